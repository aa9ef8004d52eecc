"""Models as values: usage, choice, compaction, and what can fail."""
