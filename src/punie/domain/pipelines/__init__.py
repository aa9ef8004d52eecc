"""Pipelines as values: steps, templates, expressions, and what can be wrong with a file."""
