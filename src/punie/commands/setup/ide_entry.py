"""Our entry among the agents that an IDE's own file of settings names: pure changes to its text.

JetBrains' `acp.json` and Zed's `settings.json` both have `"agent_servers": {NAME: {"command", "args", "env", ...}}`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import cast

from punie.domain.values.json_value import json_type
from punie.domain.values.jsonc import Twice, parse_jsonc, says_nothing
from punie.domain.values.jsonc_edit import with_member, with_value

AGENTS = "agent_servers"
COMMAND = "acp"
"""Of our command line: what comes before it starts us, what comes behind it are flags."""


class IdeFileError(ValueError):
    """Why the file is left as it is, in words for a person; without the file's name."""


def agents_in(text: str) -> Mapping[str, object]:
    """Every agent that the file names, ours or not; nothing where it names none. Raises `IdeFileError`."""
    return {} if says_nothing(text) else _agents(_root(text))


def fields_of(entry: object) -> Mapping[str, object]:
    """What one agent's entry says; nothing where it is no object."""
    return cast("Mapping[str, object]", entry) if isinstance(entry, Mapping) else {}


def words_of(args: object) -> list[str]:
    """The arguments of an entry, those that are texts; none where they are no list."""
    words = cast("list[object]", args) if isinstance(args, list) else []
    return [word for word in words if isinstance(word, str)]


def with_entry(text: str, name: str, entry: Mapping[str, object]) -> str:
    """The text in which the agent of that name has all that `entry` says; every other character stays as it is.

    Of an agent that is there the further keys stay, and so do values that are equal; `env` is a new agent's only.
    A file that says nothing, comments aside, becomes an object. Raises `IdeFileError` where the text cannot be
    understood, or not be changed without touching the rest.
    """
    whole = f"{text}{_break(text)}{{}}{_line_end(text)}" if says_nothing(text) else text
    root = _root(whole)
    agents = _agents(root)
    after = _changed(whole, root, agents, name, entry)
    merged = {**_known(agents.get(name, {}), name), **_wanted(agents, name, entry)}
    expected = {**root, AGENTS: {**agents, name: merged}}
    try:
        understood = after == whole or json.dumps(parse_jsonc(after)) == json.dumps(expected)
    except ValueError:
        understood = False
    if not understood:
        raise IdeFileError("it cannot be changed without touching the rest; add the agent by hand")
    return after


def agent_args(base: Sequence[str], there: object, flags: Mapping[str, str]) -> list[str]:
    """The arguments of our command: those that start us, the flags that a person gave it before, and the new ones.

    `there` is what the file has now, of any shape; a flag that is given again replaces its old value.
    """
    kept = words_of(there)
    kept = kept[kept.index(COMMAND) + 1 :] if COMMAND in kept else []
    for flag in flags:
        kept = _without_flag(kept, flag)
    return [*base, *kept, *(word for pair in flags.items() for word in pair)]


def _without_flag(words: Sequence[str], flag: str) -> list[str]:
    left: list[str] = []
    skip = False
    for word in words:
        if not skip and word != flag and not word.startswith(f"{flag}="):
            left.append(word)
        skip = not skip and word == flag
    return left


def _changed(
    text: str, root: Mapping[str, object], agents: Mapping[str, object], name: str, entry: Mapping[str, object]
) -> str:
    if AGENTS not in root:
        return with_member(text, (), AGENTS, {name: entry})
    if name not in agents:
        return with_member(text, (AGENTS,), name, entry)
    there = _known(agents[name], name)
    for key, value in _wanted(agents, name, entry).items():
        if key not in there:
            text = with_member(text, (AGENTS, name), key, value)
        elif there[key] != value:
            text = with_value(text, (AGENTS, name), key, value)
    return text


def _wanted(agents: Mapping[str, object], name: str, entry: Mapping[str, object]) -> Mapping[str, object]:
    """What the entry has to say; to one that is there, no variables are added."""
    return {key: value for key, value in entry.items() if key != "env" or name not in agents}


def _root(text: str) -> Mapping[str, object]:
    try:
        parsed = parse_jsonc(text)
    except ValueError as error:
        raise IdeFileError(f"it is not valid JSON ({error})") from error
    root = _object(parsed, "it")
    _check_once(root)
    return root


def _agents(root: Mapping[str, object]) -> Mapping[str, object]:
    agents = _object(root.get(AGENTS, {}), f'"{AGENTS}"')
    _check_once(agents)
    return agents


def _known(value: object, name: str) -> Mapping[str, object]:
    entry = _object(value, f"the agent {name!r}")
    _check_once(entry)
    return entry


def _object(value: object, what: str) -> Mapping[str, object]:
    if not isinstance(value, Mapping):
        raise IdeFileError(f"{what} has to be an object, and is {json_type(value)}")
    return cast("Mapping[str, object]", value)


def _check_once(found: Mapping[str, object]) -> None:
    if isinstance(found, Twice) and found.again:
        raise IdeFileError(f"{min(found.again)!r} is there twice; keep one of them")


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _break(text: str) -> str:
    return "" if not text.strip("\ufeff") or text.endswith("\n") else _line_end(text)
