"""The engine for models of any library: all that does not differ between one library and another."""
