"""The terminal as a front end: permission questions, and events as text or as JSON lines."""
