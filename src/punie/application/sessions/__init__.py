"""What outlives a prompt: the recorder, stored sessions, exported files, traces and notices."""
