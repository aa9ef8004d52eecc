"""`punie state`: the state in one file, and back."""
