"""The Agent Client Protocol: both ends of its wire, from bytes on a pipe to the words of the domain."""
