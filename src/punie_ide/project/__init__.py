"""Six tools of an IDE for a Python project: problems, search, symbols, opening, renaming and tests."""
