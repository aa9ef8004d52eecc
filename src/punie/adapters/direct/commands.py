"""What a person may type, read into values; no tool is called here."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TypeAlias
from urllib.parse import unquote, urlsplit

from attrs import frozen

from punie.domain.values.content import EmbeddedResource, Prompt, ResourceLink, Text
from punie.domain.values.json_value import EMPTY_OBJECT, JsonValue, NotJsonError, freeze

USAGE: Mapping[str, tuple[str, str]] = {
    "read": ("/read PATH", "show a file"),
    "write": ("/write PATH", "write a file: the text follows on the next lines"),
    "run": ("/run LINE", "run a shell command line"),
    "search": ("/search TEXT", "search the project for a text"),
    "tools": ("/tools [QUERY]", "list the tools of this session"),
    "tool": ("/tool NAME", "show one tool and its input schema"),
    "call": ("/call NAME {json}", "call any tool with these arguments"),
    "help": ("/help", "show this list"),
}


@frozen
class UseTool:
    """Call a tool. `quoted` where its output is shown verbatim; `remark` says what was odd about the input."""

    name: str
    arguments: JsonValue
    quoted: bool = False
    remark: str = ""


@frozen
class ListTools:
    """List the tools that match; all of them for an empty query."""

    query: str


@frozen
class ShowTool:
    """Show one tool."""

    name: str


@frozen
class ShowHelp:
    """Show the commands."""


@frozen
class Misread:
    """A command that cannot be carried out; `problem` is a whole sentence."""

    problem: str


@frozen
class NoCommand:
    """Plain text, which only a model could answer."""


Command: TypeAlias = UseTool | ListTools | ShowTool | ShowHelp | Misread | NoCommand


def parse_command(prompt: Prompt) -> Command:
    """The command of a prompt. A file that is linked or attached after `/read` counts as its path."""
    text = "\n".join(block.text for block in prompt.blocks if isinstance(block, Text)).lstrip()
    if not text.startswith("/"):
        return NoCommand()
    head, newline, body = text.partition("\n")
    word, _, rest = head[1:].partition(" ")
    line = rest.strip() or _linked(prompt)
    name = word.strip().lower()
    if name == "write":
        return _write(line, body if newline else None)
    if name == "call":
        return _call(f"{line}{newline}{body}")
    if name == "run":
        return _run(f"{line}{newline}{body}".strip())
    reader = _ONE_LINE.get(name)
    if reader is None:
        return Misread(f"There is no command /{word.strip()}.")
    return reader(line)


def _read(line: str) -> Command:
    return UseTool("read_file", {"path": line}, quoted=True) if line else _lacks("read")


def _write(line: str, body: str | None) -> Command:
    if not line or body is None:
        return _lacks("write")
    return UseTool("write_file", {"path": line, "content": body})


def _run(line: str) -> Command:
    return UseTool("run_command", {"command": line}, quoted=True) if line else _lacks("run")


def _search(line: str) -> Command:
    return UseTool("search_text", {"text": line}, quoted=True) if line else _lacks("search")


def _tools(line: str) -> Command:
    return ListTools(line)


def _tool(line: str) -> Command:
    return ShowTool(line) if line else _lacks("tool")


def _help(_line: str) -> Command:
    return ShowHelp()


_ONE_LINE: Mapping[str, Callable[[str], Command]] = {
    "read": _read,
    "search": _search,
    "tools": _tools,
    "tool": _tool,
    "help": _help,
}


def _call(line: str) -> Command:
    words = line.split(maxsplit=1)
    if not words:
        return _lacks("call")
    if len(words) == 1:
        return UseTool(words[0], EMPTY_OBJECT)
    written = words[1].strip()
    try:
        return UseTool(words[0], freeze(json.loads(written)))
    except NotJsonError as error:
        return Misread(f"The arguments cannot be used: {error}.")
    except (ValueError, RecursionError) as error:
        # As with a model that writes broken JSON: the desk gets what was written, and its card says that it failed.
        return UseTool(words[0], written, remark=f"The arguments are not JSON: {error}.")


def _lacks(name: str) -> Misread:
    form, does = USAGE[name]
    return Misread(f"/{name} needs more: `{form}` ({does}).")


def _linked(prompt: Prompt) -> str:
    """The first linked or attached resource: a path where it is a file, else its address."""
    for block in prompt.blocks:
        if isinstance(block, (ResourceLink, EmbeddedResource)):
            address = urlsplit(block.uri)
            return unquote(address.path) if address.scheme == "file" else block.uri
    return ""
