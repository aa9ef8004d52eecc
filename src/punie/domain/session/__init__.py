"""A session and its turns as values: events, log, transcript, timeline and recovery."""
