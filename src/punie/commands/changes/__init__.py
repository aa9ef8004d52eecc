"""`punie changes`: what the turns of a session changed."""
