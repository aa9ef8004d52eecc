"""Clients that come and go: whose a session is, what waits for its client, and how it comes back."""
