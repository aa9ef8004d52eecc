"""Nouns and rules: values and pure functions, free of any framework."""
