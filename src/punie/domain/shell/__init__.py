"""Shell lines as values: what was written (`line`), and what it would do (`report`). No I/O, no parser."""
