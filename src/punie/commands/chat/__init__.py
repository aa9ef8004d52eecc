"""`punie chat`: a conversation at a terminal."""
