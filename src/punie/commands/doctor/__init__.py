"""`punie doctor`: whether everything a session needs is there."""
