"""Adapter: the keyring of the operating system, through the library `keyring`."""
