"""Recorded sessions run again: a model is asked, and its tool calls are answered from the session's log."""
