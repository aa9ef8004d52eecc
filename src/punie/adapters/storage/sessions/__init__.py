"""Stores of sessions: in memory, in the user's database, on a PostgreSQL server."""
