"""The kit for plug-in authors: an agent that checks the client it serves (`punie ide check`)."""
