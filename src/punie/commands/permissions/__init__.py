"""`punie permissions`: decisions, grants, audit and trust."""
