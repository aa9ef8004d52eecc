"""Composed tools: pipeline files read, checked, offered and run."""
