"""Commands and flags as other agents name them, with what they are here."""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import Final

_ASK: Final = 'punie ask "..."'
_ON: Final = "punie chat --continue"
_AUTO: Final = "--mode auto"

COMMANDS: Final[Mapping[str, str]] = {
    "help": "punie --help", "version": "punie --version", "-v": "punie --version", "-V": "punie --version",
    "run": _ASK, "exec": _ASK, "prompt": _ASK, "-p": _ASK, "--print": _ASK, "--prompt": _ASK,
    "resume": _ON, "continue": _ON, "--continue": _ON, "-c": _ON, "--resume": _ON, "-r": _ON,
    "--model": "punie chat --model M", "-m": "punie chat --model M",
    "--yolo": f"punie chat {_AUTO}", "--full-auto": f"punie chat {_AUTO}",
    "--dangerously-skip-permissions": f"punie chat {_AUTO}",
    "login": "punie setup model", "auth": "punie setup model", "model": "punie setup model",
    "models": "punie setup model", "init": "punie setup", "install": "punie setup", "mcp": "punie servers",
    "status": "punie doctor", "cost": "punie usage", "history": "punie sessions", "diff": "punie changes",
    "revert": "punie undo", "settings": "punie config",
}  # fmt: skip
"""Words behind `punie`, each with the line that does the same here."""

FLAGS: Final[Mapping[str, str]] = {
    "--yolo": _AUTO, "--full-auto": _AUTO, "--dangerously-skip-permissions": _AUTO, "-c": "--continue",
    "--resume": "--session ID", "-r": "--session ID", "-m": "--model", "-y": "--yes", "-C": "--cwd", "--cd": "--cwd",
    "--approval-mode": "--mode", "--permission-mode": "--mode", "--output-format": "--json", "--format": "--json",
    "--allowedTools": "--allow", "--allowed-tools": "--allow", "--disallowedTools": "--deny",
}  # fmt: skip
"""The flags of commands."""

PROMPTS: Final = frozenset({"-p", "--print", "--prompt"})
"""Flags before a prompt, which needs none here."""


def meant(word: str, there: Container[str], *, is_command: bool) -> str:
    """A sentence with what that word is here, after a blank; empty where it is not known.

    `there` are the flags of the command; `is_command` says that the word is behind `punie` itself.
    """
    if is_command:
        return f" Here that is `{COMMANDS[word]}`." if word in COMMANDS else ""
    if word in PROMPTS and "--detach" in there:
        return f" A prompt needs no flag: `{_ASK}`."
    if word in PROMPTS and "--continue" in there:
        return f" One prompt is `{_ASK}`."
    flag = FLAGS.get(word, "")
    return f" Here that is {flag}." if flag and flag.split()[0] in there else ""
