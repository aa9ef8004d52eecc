"""The expressions of pipeline files: a small part of Python's own syntax."""
