"""What the built-in tools say of themselves beyond what a model is sent: needs, permissions, examples (S2-42 to S2-45).

Kept by name beside the tools, since none of it travels to a model: descriptions stay short, listings stay telling.
"""

from __future__ import annotations

from collections.abc import Mapping

from punie.domain.tools.metadata import Capability, Permission, ToolExample, ToolMetadata


def _details(
    capabilities: Capability, permissions: Permission, *examples: tuple[Mapping[str, object], str]
) -> ToolMetadata:
    return ToolMetadata(
        author="Punie",
        examples=(ToolExample(dict(arguments), what) for arguments, what in examples),
        required_capabilities=capabilities,
        required_permissions=permissions,
    )


_READS = (Capability.READ_FILES, Permission.READ)
_GIT = (Capability.GIT, Permission.READ)
_RUNS = (Capability.TERMINAL, Permission.EXECUTE)
_LOOKS = (Capability.TERMINAL, Permission.READ)
_CHECKS = (Capability.READ_FILES, Permission.READ | Permission.EXECUTE)
_EDITS = (Capability.READ_FILES | Capability.WRITE_FILES, Permission.READ | Permission.WRITE)

DETAILS: Mapping[str, ToolMetadata] = {
    "read_file": _details(
        *_READS,
        ({"path": "src/app.py"}, "a whole file"),
        ({"path": "src/app.py", "line": 40, "limit": 20}, "twenty lines from the fortieth"),
    ),
    "write_file": _details(
        Capability.WRITE_FILES, Permission.WRITE, ({"path": "notes.txt", "content": "Hello.\n"}, "a new file")
    ),
    "edit_file": _details(
        *_EDITS, ({"path": "src/app.py", "old_text": "x = 1", "new_text": "x = 2"}, "one exact piece")
    ),
    "list_files": _details(*_READS, ({"path": "src", "recursive": True}, "the whole tree below a folder")),
    "search_text": _details(*_READS, ({"text": "def total", "glob": "*.py"}, "a text in the Python files")),
    "run_command": _details(
        *_RUNS,
        ({"command": "ls -l | head"}, "a shell line"),
        ({"command": "python", "args": ["-m", "pytest"]}, "a program with its arguments"),
    ),
    "get_terminal_output": _details(*_LOOKS),
    "wait_for_terminal_exit": _details(*_LOOKS),
    "release_terminal": _details(*_RUNS),
    "kill_terminal": _details(*_RUNS),
    "get_shell_info": _details(Capability.NONE, Permission.READ, ({}, "the machine and the shell")),
    "git_status": _details(*_GIT, ({}, "branch and changed files")),
    "git_diff": _details(*_GIT, ({"path": "src"}, "what changed below a folder")),
    "git_log": _details(*_GIT, ({"limit": 5}, "the last five commits")),
    "git_add_commit": _details(
        Capability.GIT, Permission.WRITE, ({"message": "Fix the total"}, "every changed file in one commit")
    ),
    "python_lint": _details(*_CHECKS),
    "python_types": _details(*_CHECKS),
    "python_tests": _details(*_CHECKS),
}
"""By tool name; a tool that gives details of its own keeps those."""
