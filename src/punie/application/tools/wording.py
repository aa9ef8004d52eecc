"""What people read of the tools whose names are fixed: titles, denials, and the paths that a call names.

Kept by name and not by class, since a client may serve a tool of the same name and kind itself (S0-66): it reads the
same, and its paths are held against the session's roots just as well.
"""

from __future__ import annotations

from collections.abc import Mapping

from punie.application.tools.session_tool import CallContext, text_argument, whole_argument, words_argument
from punie.domain.values.display import one_line
from punie.domain.values.json_value import JsonObject
from punie.domain.values.line_changes import LINE_LIMIT
from punie.domain.values.terminal import Command

_PATH_TITLES: Mapping[str, str] = {
    "read_file": "Reading {}",
    "write_file": "Writing {}",
    "edit_file": "Editing {}",
    "list_files": "Listing {}",
}
_TERMINAL_TITLES: Mapping[str, str] = {
    "get_terminal_output": "Reading the output of {}",
    "release_terminal": "Releasing {}",
    "wait_for_terminal_exit": "Waiting for {}",
    "kill_terminal": "Stopping {}",
}
_PLAIN_TITLES: Mapping[str, str] = {
    "get_shell_info": "Looking at the shell",
    "git_status": "Looking at the git status",
    "git_diff": "Looking at the git diff",
    "git_log": "Looking at the git log",
}
_DENIED_PATHS: Mapping[str, str] = {"write_file": "write", "edit_file": "edit", "read_file": "read"}
_PATH_ARGUMENTS: Mapping[str, str] = {
    "read_file": "path",
    "write_file": "path",
    "edit_file": "path",
    "list_files": "path",
    "search_text": "path",
    "run_command": "cwd",
    "git_diff": "path",
    "python_lint": "path",
    "python_types": "path",
    "python_tests": "path",
}


COMMAND_ARGUMENTS = frozenset({"command", "args", "cwd", "background"})
"""All that a call of run_command may say."""


def title_of(name: str, arguments: JsonObject) -> str | None:
    """The title of a call of a tool with a fixed name, or None for any other."""
    if name in _PATH_TITLES:
        return one_line(_PATH_TITLES[name].format(text_argument(arguments, "path", ".")))
    if name in _TERMINAL_TITLES:
        return one_line(_TERMINAL_TITLES[name].format(text_argument(arguments, "terminal_id", "a terminal")))
    if name == "run_command":
        return one_line(f"Running {command_line(arguments)}", limit=400)
    if name == "search_text":
        return one_line(f"Searching for {text_argument(arguments, 'text')!r}")
    if name == "git_add_commit":
        return one_line(f"Committing: {text_argument(arguments, 'message')}")
    return _PLAIN_TITLES.get(name)


def denial_of(name: str, arguments: JsonObject) -> str:
    """The first words of a denial, as the model reads it (S1-16)."""
    if name == "run_command":
        return f"Permission denied to run {command_line(arguments)}"
    if name in _DENIED_PATHS:
        return f"Permission denied to {_DENIED_PATHS[name]} {text_argument(arguments, 'path')}"
    return f"Permission denied to use {name}"


def paths_of(name: str, arguments: JsonObject) -> tuple[str, ...]:
    """The paths that a call of a tool with a fixed name names."""
    if name == "git_add_commit":
        return words_argument(arguments, "paths") or ()
    key = _PATH_ARGUMENTS.get(name)
    value = text_argument(arguments, key) if key is not None else ""
    return (value,) if value else ()


def line_of(name: str, arguments: JsonObject) -> int | None:
    """The line, from 1, at which a call of a tool with a fixed name looks; total."""
    line = whole_argument(arguments, "line") if name == "read_file" else None
    return line if line is not None and 1 <= line <= LINE_LIMIT else None


def command_of(arguments: JsonObject, context: CallContext) -> Command | None:
    """The program or shell line of a call of run_command; None where its arguments are not of that form."""
    line, given = text_argument(arguments, "command"), arguments.get("args")
    words = words_argument(arguments, "args")
    if not line.strip() or (given is not None and (words is None or words != given)):
        return None
    cwd = context.locations[0].path if context.locations else context.cwd
    return Command.of(line, words, cwd)


def command_line(arguments: JsonObject) -> str:
    """The command as a person would type it."""
    return Command.of(text_argument(arguments, "command"), words_argument(arguments, "args"), "").line
