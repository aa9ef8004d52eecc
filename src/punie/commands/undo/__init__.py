"""`punie undo`: takes back what the turns of a session changed."""
