"""Descriptions of servers from elsewhere: from an address, and from a registry of the public one's API."""
