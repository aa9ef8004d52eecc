"""Arguments of the project tools, and what they need of the IDE.

The agent has checked the arguments against the schema; an agent that did not gets a sentence, not a crash.
"""

from __future__ import annotations

from typing import Any, TypeVar

from punie.api import Terminals, ToolFailedError, Workspace
from punie_ide.tools import ToolContext

T = TypeVar("T", str, int)


def argument(arguments: dict[str, Any], name: str, default: T) -> T:
    """The argument of that name, of the default's type."""
    value = arguments.get(name, default)
    if type(value) is not type(default):
        raise ToolFailedError(f"The argument {name} has the wrong type. Look at the tool's schema.")
    return value


def required(arguments: dict[str, Any], name: str) -> str:
    """A text that must be there and not be empty."""
    value = argument(arguments, name, "")
    if not value:
        raise ToolFailedError(f"The argument {name} is missing or empty. Look at the tool's schema.")
    return value


def workspace_of(context: ToolContext) -> Workspace:
    """The IDE's files."""
    if context.workspace is None:
        raise ToolFailedError("This IDE was opened without files.")
    return context.workspace


def terminals_of(context: ToolContext) -> Terminals:
    """The IDE's terminals."""
    if context.terminals is None:
        raise ToolFailedError("This IDE was opened without terminals.")
    return context.terminals
