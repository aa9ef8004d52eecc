"""The policy as people and administrators write it, and what it would have decided."""
