"""Where records are kept: in memory, or in the user's database."""
