"""Punie: a coding agent whose tool runtime is the IDE."""

__version__ = "0.1.0"
