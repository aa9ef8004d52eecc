"""Verbs: one use case a file, written on ports only."""
