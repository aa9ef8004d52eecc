"""`punie usage`: what was called, and what it cost."""
