"""Slash commands that Punie runs itself, without asking the model."""
