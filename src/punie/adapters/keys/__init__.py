"""Keys of this user: in the keyring of the system, or in a file."""
