"""`punie sessions`: stored sessions."""
