"""Arguments, options and paths of one command, as far as they are certain before the line runs."""
