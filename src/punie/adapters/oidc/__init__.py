"""Tokens of an OpenID Connect issuer, by which a server knows the person behind a connection."""
