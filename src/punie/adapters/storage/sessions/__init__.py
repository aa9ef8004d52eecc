"""Stores of sessions: in the user's database, on a PostgreSQL server, in exported files."""
