"""Six tools that an IDE has over a Python project: problems, search, symbols, opening, renaming and tests."""
