"""Tools that run programs and look at what they do."""
