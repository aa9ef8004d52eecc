"""Roles of parameters that no one has named: those that a schema says, and those that its words suggest.

A property says its role by `x-punie-role`. For any other parameter, names, types and descriptions suggest a role. What
a guess says should only make the caller's decisions stricter.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import cast

from attrs import frozen

from shellsight.arguments.roles import Arguments, Role, Roles

ROLE_KEY = "x-punie-role"
"""The key by which a property of an input schema says its role; the values are those of `Role`."""

_SAID = {role.value: role for role in Role}
_NO_SCHEMA: Arguments = MappingProxyType({})
_HOLDERS = frozenset({"properties", "allOf", "anyOf", "oneOf"})
"""Keys of a schema that may hold parameters."""


def roles_of(
    schema: Arguments, known: Mapping[str, Role], tool: str, kind: str, *, more: Arguments, trusted: bool
) -> Roles:
    """The roles of the parameters of an input schema.

    `known` are roles that do not have to be guessed, by parameter; `tool` is the tool's own name and `kind` a word as
    in ACP; `more` has the names of parameters that the schema leaves out. A schema that is not `trusted` cannot make a
    role less strict than a guess would. Where a tool runs something and no parameter says what, each text may say it.
    """
    about = _words(tool)
    guessing = _Guessing(_access(about, kind), kind == "execute" or not _EXECUTES.isdisjoint(about))
    roles, guessed = dict(known), set[str]()
    for name, described in (*_listed(schema), *((name, _NO_SCHEMA) for name in more)):
        word, guess = described.get(ROLE_KEY), guessing.role(name, described)
        said = (_SAID.get(word) if isinstance(word, str) else None) or known.get(name)
        if said is not None and (trusted or name in known or _weight(said) >= _weight(guess)):
            roles[name] = said
        elif guess is not None:
            roles[name] = guess
            guessed.add(name)
    if guessing.executes and _COMMANDS.isdisjoint(roles.values()):
        unknown = [name for name, one in _listed(schema) if name not in roles and "object" not in _types(one)]
        roles |= dict.fromkeys(unknown, Role.ARGV)
        guessed.update(unknown)
    return Roles(roles, frozenset(guessed), open=True)


def _listed(schema: Arguments, before: str = "", depth: int = 3) -> Iterator[tuple[str, Arguments]]:
    """The parameters of an object with their schemas, those of inner objects in place of the parameter that holds them.

    An object that lists no parameters may take any, so the names that are usual count.
    """
    found: dict[str, object] = {}
    for one in (schema, *(one for key in ("allOf", "anyOf", "oneOf") for one in _objects(schema.get(key)))):
        listed = one.get("properties")
        found |= cast("Arguments", listed) if isinstance(listed, Mapping) else {}
    is_object = not before or "object" in _types(schema)
    if not found and is_object and schema.get("additionalProperties") is not False:
        found = dict(_USUAL)
    for name, value in found.items():
        described = next(_objects(value), _NO_SCHEMA)
        inner = next(_objects(described.get("items")), described)
        nested = depth and ("object" in _types(inner) or not _HOLDERS.isdisjoint(inner))
        deeper = [*_listed(inner, f"{before}{name}.", depth - 1)] if nested else []
        yield from deeper or [(before + name, described)]


def _objects(value: object) -> Iterator[Arguments]:
    items = cast("tuple[object, ...]", value) if isinstance(value, (tuple, list)) else (value,)
    return (cast("Arguments", item) for item in items if isinstance(item, Mapping))


def _types(schema: Arguments) -> set[str]:
    kinds = schema.get("type")
    listed = cast("tuple[object, ...]", kinds) if isinstance(kinds, (tuple, list)) else (kinds,)
    return {kind for kind in listed if isinstance(kind, str)}


def _weight(role: Role | None) -> int:
    """How strictly a role is judged: commands, then changes of files, then other paths and URLs, then all else."""
    if role in _COMMANDS:
        return 3
    if role is not None and role.changes:
        return 2
    return int(role is not None and (role is Role.URL or role.access is not None))


_COMMANDS = frozenset({Role.COMMAND, Role.ARGV})
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
        "folders", "uri", "uris", "source", "destination", "src", "dst", "dest", "target", "output",
    }
)  # fmt: skip
_JOINS = frozenset({"in", "to", "of", "from", "name", "names"})
_COMMAND_WORDS = frozenset({"command", "commands", "cmd", "cmdline", "script", "program", "executable"})
_BY_NAME: Mapping[str, Role] = {
    **dict.fromkeys(("cwd", "workdir", "workingdir", "workingdirectory", "projectpath", "repopath"), Role.CWD),
    **dict.fromkeys(("args", "argv", "arguments"), Role.ARGV),
    **dict.fromkeys(("content", "contents", "filetext", "newcontent"), Role.CONTENT),
    **dict.fromkeys(("oldtext", "oldstring", "oldstr", "oldcontent"), Role.OLD_TEXT),
    **dict.fromkeys(("newtext", "newstring", "newstr"), Role.NEW_TEXT),
    **dict.fromkeys(("patch", "diff"), Role.PATCH),
    **dict.fromkeys(("query", "q", "pattern", "regex", "searchtext", "keyword"), Role.QUERY),
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


_EXECUTES = frozenset({"run", "exec", "execute", "eval", "shell", "bash", "sh", "terminal", "command", "cmd"})
_CODE = frozenset({"input", "code", "text", "source", "expression", "line"})
"""Last words of parameters that hold what a tool runs, where the tool's name says that it runs something."""


def _access(about: Sequence[str], kind: str) -> Role:
    looks = kind in _LOOKING_KINDS or (kind == "other" and about[:1] and about[0] in _LOOKS)
    return Role.PATH_READ if looks else Role.PATH_DELETE if kind == "delete" else Role.PATH_WRITE


def _words(name: str) -> list[str]:
    return [word.lower() for word in _PARTS.findall(name)]


@frozen
class _Guessing:
    """The guesses about one tool: `path` is the role of a path, and `executes` whether its name says that it runs."""

    path: Role
    executes: bool

    def role(self, name: str, schema: Arguments) -> Role | None:
        """The role that a parameter probably has; None where nothing suggests one."""
        words, types = _words(name.rpartition(".")[2]), _types(schema)
        joined, last = "".join(words), words[-1] if words else ""
        by_name = _BY_NAME.get(joined)
        if types and not types & {"string", "array"}:
            if by_name is Role.LINE:
                return by_name
            return None if "object" in types else Role.PLAIN
        if last in _COMMAND_WORDS or joined.endswith("commandline") or (self.executes and last in _CODE):
            return Role.COMMAND
        if by_name is not None:
            return None if by_name is Role.QUERY and self.executes else by_name
        if last in {"url", "urls"}:
            return Role.URL
        starts = len(words) > 1 and words[0] in _PATHS and words[1] in _JOINS
        described = schema.get("description")
        says = isinstance(described, str) and _SAYS_PATH.search(described) is not None
        is_path = last in _PATHS or starts or says or schema.get("format") in ("path", "file-path")
        return self.path if is_path else None
