"""The commands of `punie`, a folder each: `command.py` declares the flags, and imports nothing heavy."""
