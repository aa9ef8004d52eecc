"""From the text of a line to a tree of commands: a POSIX reader, checked against the grammar of tree-sitter."""
