"""Commands of the user that run on events of a session, in the form of Claude Code's hooks."""
