"""Tools that speak with the person, or change what the session offers."""
