"""`punie trace`: a stored session as a page."""
