"""From a tree of commands to a report: one pass that follows directories, variables, functions and pipes."""
