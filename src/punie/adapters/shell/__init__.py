"""Reads shell lines: a POSIX reader of our own, and tree-sitter's bash grammar as the second opinion it needs."""
