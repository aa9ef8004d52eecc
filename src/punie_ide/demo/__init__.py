"""The demo's conversation: the place it works in, the script it plays, the screen it is shown on, and the verdict."""
