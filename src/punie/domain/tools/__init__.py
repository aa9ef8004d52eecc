"""Tools as values: descriptors, catalogue, discovery, schemas, disclosure, search and the life of a call."""
