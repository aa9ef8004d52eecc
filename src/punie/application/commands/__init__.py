"""Slash commands that Punie carries out itself, without asking the model."""
