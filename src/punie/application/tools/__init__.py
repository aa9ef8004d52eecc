"""Built-in tools, written on ports only."""
