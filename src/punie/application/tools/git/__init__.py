"""Tools on the project's repository."""
