"""Sessions beyond one prompt: the recorder, stored sessions and notices."""
