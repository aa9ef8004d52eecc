"""The meanings of a tool's arguments: which are shell lines, paths, URLs or parts of a change."""
