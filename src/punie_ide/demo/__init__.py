"""The demo of the reference IDE: its set-up, its terminal, and the conversation with a verdict."""
