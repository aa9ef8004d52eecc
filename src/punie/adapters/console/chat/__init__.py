"""The terminal of `punie chat`: its screen, its input line, its questions, and the events of a session on it."""
