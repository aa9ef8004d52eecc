"""Turns that survive their process, as workflows of DBOS."""
