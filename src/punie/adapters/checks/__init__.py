"""The project's linter, type checker and test runner: finding them, and reading their reports."""
