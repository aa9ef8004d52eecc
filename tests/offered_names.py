"""The names of the built-in tools in offered order, as a session offers them without a catalogue (R-01, R-03)."""

from __future__ import annotations

TERMINAL = ["run_command", "get_terminal_output", "release_terminal", "wait_for_terminal_exit", "kill_terminal"]
STATIC = ["read_file", "write_file", *TERMINAL]
EDITING = ["edit_file", "restore_file"]
"""A client's, where it both reads and writes files."""

LOOKING = ["list_files", "search_text", "outline", "code"]
"""This machine's, beside a client that reads files."""

RUNNING = [
    "get_shell_info", "git_status", "git_diff", "git_log", "git_add_commit", "python_lint", "python_types",
    "python_tests",
]  # fmt: skip
"""This machine's, with the terminal tools, whoever serves those."""

MACHINE = [*LOOKING, *RUNNING]
"""This machine's alone: no client has a method for one of them."""

ALL = [*STATIC, *EDITING, *MACHINE]
