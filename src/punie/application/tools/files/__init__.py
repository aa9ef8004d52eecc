"""Tools that read, write and search the project's files."""
