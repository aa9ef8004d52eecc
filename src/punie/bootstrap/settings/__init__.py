"""The settings: where they are read from, what each key means, and what a project may change."""
