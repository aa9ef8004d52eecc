"""One folder a technology; strangers to each other."""
