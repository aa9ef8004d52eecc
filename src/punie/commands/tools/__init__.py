"""`punie tools`: the tools that a session would have."""
