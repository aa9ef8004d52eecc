"""Code mode's sandbox: Monty, a Python interpreter without input or output (the extra `code`)."""
