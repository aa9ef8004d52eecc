"""Stores of usage, decisions and sessions: the user's database (SQLite), and PostgreSQL for sessions."""
