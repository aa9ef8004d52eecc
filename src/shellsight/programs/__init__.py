"""What is known of each program: which options only look, what its operands are, and what it does to them."""
