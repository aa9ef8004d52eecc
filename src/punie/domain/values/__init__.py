"""Values without a rule: JSON, text, paths, content blocks, terminals."""
