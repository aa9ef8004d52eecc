"""What is known of programs, one family a module: which options only look, what operands are, what wraps what."""
