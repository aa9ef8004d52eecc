"""Git repositories through dulwich, which runs no program."""
