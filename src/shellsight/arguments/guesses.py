"""Roles of parameters that no one has named: those that a schema says, and those that its words suggest.

A property says its role by `x-punie-role`. For any other parameter, names, types and descriptions suggest a role. What
a guess says should only make the caller's decisions stricter.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import cast

from shellsight.arguments.roles import Arguments, Role, Roles

ROLE_KEY = "x-punie-role"
"""The key by which a property of an input schema says its role; the values are those of `Role`."""

_SAID = {role.value: role for role in Role}
_NO_SCHEMA: Arguments = MappingProxyType({})


def roles_of(schema: Arguments, known: Mapping[str, Role], path: Role, *, more: Arguments, trusted: bool) -> Roles:
    """The roles of the parameters of an input schema.

    `known` are roles that do not have to be guessed, by parameter; `path` is the role of a path that is guessed; `more`
    has the names of parameters that the schema leaves out. A schema that is not `trusted` cannot make a role less
    strict than a guess would. One that lists no parameters may take any, so the names that are usual count.
    """
    listed = schema.get("properties")
    properties = cast("Arguments", listed) if isinstance(listed, Mapping) else _NO_SCHEMA
    if not properties and schema.get("additionalProperties") is not False:
        properties = _USUAL
    roles, guessed = dict(known), set[str]()
    for name, value in {**properties, **dict.fromkeys(more, _NO_SCHEMA)}.items():
        described = cast("Arguments", value) if isinstance(value, Mapping) else _NO_SCHEMA
        word, guessing = described.get(ROLE_KEY), guess(name, described, path)
        said = (_SAID.get(word) if isinstance(word, str) else None) or known.get(name)
        if said is not None and (trusted or name in known or _weight(said) >= _weight(guessing)):
            roles[name] = said
        elif guessing is not None:
            roles[name] = guessing
            guessed.add(name)
    return Roles(roles, frozenset(guessed))


def _weight(role: Role | None) -> int:
    """How strictly a role is judged: commands, then changes of files, then other paths and URLs, then all else."""
    if role in {Role.COMMAND, Role.ARGV}:
        return 3
    if role is not None and role.changes:
        return 2
    return int(role is not None and (role is Role.URL or role.access is not None))


_LOOKING_KINDS = frozenset({"read", "search", "think"})
_LOOKS = frozenset(
    {
        "get", "read", "list", "search", "find", "show", "view", "open", "fetch", "lint", "check", "describe",
        "inspect", "analyze", "stat", "tree", "grep", "head", "cat", "count", "diff", "status", "log", "info", "query",
        "lookup",
    }
)  # fmt: skip
"""First words of the names of tools that only look."""

_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_PATHS = frozenset(
    {
        "path", "paths", "file", "files", "filename", "filepath", "dir", "directory", "directories", "folder",
        "folders", "uri", "uris",
    }
)  # fmt: skip
_JOINS = frozenset({"in", "to", "of", "from", "name", "names"})
_COMMAND_WORDS = frozenset(["command", "commands", "cmd", "script"])
_BY_NAME: Mapping[str, Role] = {
    **dict.fromkeys(("cwd", "workdir", "workingdir", "workingdirectory", "projectpath", "repopath"), Role.CWD),
    **dict.fromkeys(("args", "argv"), Role.ARGV),
    **dict.fromkeys(("content", "contents", "filetext", "newcontent"), Role.CONTENT),
    **dict.fromkeys(("oldtext", "oldstring", "oldstr", "oldcontent"), Role.OLD_TEXT),
    **dict.fromkeys(("newtext", "newstring", "newstr"), Role.NEW_TEXT),
    **dict.fromkeys(("patch", "diff"), Role.PATCH),
    **dict.fromkeys(("line", "linenumber", "startline"), Role.LINE),
}
_SAYS_PATH = re.compile(
    r"\b(?:file|folder|directory) ?paths?\b|\b(?:absolute|relative|full) paths?\b|\bpaths? (?:to|of) ", re.IGNORECASE
)
_USUAL: Arguments = dict.fromkeys(
    ("path", "paths", "file", "files", "filePath", "file_path", "filename", "uri", "url", "directory", "pathInProject",
     "command", "cmd", "script", "cwd", "content", "patch"),
    _NO_SCHEMA,
)  # fmt: skip
"""Names that parameters of tools without a list of parameters often have."""


def access(tool: str, kind: str) -> Role:
    """The role of a path that is guessed, by the tool's own name and its kind, a word as in ACP."""
    first = next(iter(_words(tool)), "")
    if kind in _LOOKING_KINDS or (kind == "other" and first in _LOOKS):
        return Role.PATH_READ
    return Role.PATH_DELETE if kind == "delete" else Role.PATH_WRITE


def _words(name: str) -> list[str]:
    return [word.lower() for word in _PARTS.findall(name)]


def guess(name: str, schema: Arguments, path: Role) -> Role | None:
    """The role that a parameter probably has; None where nothing suggests one. `path` is the role of a path."""
    words = _words(name)
    joined, last = "".join(words), words[-1] if words else ""
    kinds = schema.get("type")
    listed = cast("tuple[object, ...]", kinds) if isinstance(kinds, tuple) else (kinds,)
    types = {kind for kind in listed if isinstance(kind, str)}
    by_name = _BY_NAME.get(joined)
    if types and not types & {"string", "array"}:
        if by_name is Role.LINE:
            return by_name
        return None if "object" in types else Role.PLAIN
    if last in _COMMAND_WORDS or joined.endswith("commandline"):
        return Role.COMMAND
    if by_name is not None:
        return by_name
    if last in {"url", "urls"}:
        return Role.URL
    starts = len(words) > 1 and words[0] in _PATHS and words[1] in _JOINS
    described = schema.get("description")
    says = isinstance(described, str) and _SAYS_PATH.search(described) is not None
    return path if last in _PATHS or starts or schema.get("format") in {"path", "file-path"} or says else None
