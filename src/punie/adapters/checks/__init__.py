"""The project's linter, type checker and test runner: where they are, and what their reports mean."""
