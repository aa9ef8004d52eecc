"""The terminal as a front end: questions, events as text or as JSON lines."""
