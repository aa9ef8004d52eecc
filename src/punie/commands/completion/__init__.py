"""`punie completion`: shell completion."""
