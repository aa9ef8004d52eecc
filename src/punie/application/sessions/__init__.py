"""Sessions beyond one prompt: the recorder, stored sessions, traces and notices."""
