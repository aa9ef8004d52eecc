"""Boxes for programs on Linux: Landlock, seccomp and dropped capabilities, set without a helper program."""
