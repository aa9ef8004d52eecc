"""Tools that check the project's Python code."""
