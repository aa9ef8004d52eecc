"""Roles: the meanings of a tool's parameters, such as a path, a command, or a part of a change.

A descriptor names the roles of its parameters. Everything that is derived from a call before it runs follows from
them: its paths, the command that would run, its title, the line to show, and the change that it proposes. Every
function here is total: arguments are read as the model wrote them, before they are validated.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, StrEnum
from types import MappingProxyType

from attrs import field, frozen

from punie.domain.tools.schema import whole_argument, words_argument
from punie.domain.values.json_value import JsonObject, JsonValue
from punie.domain.values.line_changes import LINE_LIMIT
from punie.domain.values.terminal import Command


class Access(StrEnum):
    """The effect of a call on a path that it names."""

    LOOK = "look"
    READ = "read"
    WRITE = "write"
    DELETE = "delete"
    CREATE = "create"

    @property
    def changes(self) -> bool:
        """Whether the file or folder at the path is changed."""
        return self in {Access.WRITE, Access.DELETE, Access.CREATE}


class Role(StrEnum):
    """The meaning of one parameter; the value is the word that a schema's `x-punie-role` uses for it.

    `PATH_LOOK` shows names only. `PATH_BELOW` reads what lies below the path, or below the session's directories where
    no path is given. `PLAIN` has no bearing on what is read, changed or run.
    """

    PATH_LOOK = "path:look"
    PATH_READ = "path:read"
    PATH_BELOW = "path:below"
    PATH_WRITE = "path:write"
    PATH_DELETE = "path:delete"
    PATH_CREATE = "path:create"
    COMMAND = "command"
    ARGV = "argv"
    CWD = "cwd"
    CONTENT = "content"
    OLD_TEXT = "old_text"
    NEW_TEXT = "new_text"
    PATCH = "patch"
    LINE = "line"
    URL = "url"
    QUERY = "query"
    PLAIN = "plain"

    @property
    def access(self) -> Access | None:
        """The access to the path; None for a parameter that holds none. A directory to run in is looked at."""
        if self is Role.CWD:
            return Access.LOOK
        kind, _, access = self.value.partition(":")
        if kind != "path":
            return None
        return Access.READ if self is Role.PATH_BELOW else Access(access)


class Column(Enum):
    """The kinds of calls that a mode distinguishes: the columns of the table of modes."""

    READ = "read in roots"
    EDIT = "edit in roots"
    SAFE_COMMAND = "command on the safe list"
    OTHER_COMMAND = "other command"
    DOUBTFUL_COMMAND = "dangerous command, or one that is not understood"
    OTHER_TOOL = "other tool"


@frozen
class Change:
    """The change that a call proposes: whole new content, one text in place of another, or a patch.

    A field is None where the call gives no such text.
    """

    content: str | None = None
    old_text: str | None = None
    new_text: str | None = None
    patch: str | None = None


def _read_only(roles: Mapping[str, Role]) -> Mapping[str, Role]:
    return MappingProxyType(dict(roles))


@frozen
class Roles:
    """The roles of a tool's parameters by name; immutable, lives as long as the descriptor.

    The order of the names is the order in which paths are given. The meaning of a parameter without a role is unknown.
    """

    by_name: Mapping[str, Role] = field(factory=dict[str, Role], converter=_read_only)

    @classmethod
    def of(cls, roles: Roles | Mapping[str, Role]) -> Roles:
        """The same roles as a value."""
        return roles if isinstance(roles, Roles) else cls(roles)

    def __contains__(self, role: object) -> bool:
        return role in self.by_name.values()

    @property
    def changes_files(self) -> bool:
        """Whether a call may change the file or folder at a path that it names."""
        return any(role.access is not None and role.access.changes for role in self.by_name.values())

    def know(self, arguments: JsonObject) -> bool:
        """Whether every argument of the call has a role: one without may name another path or change the command."""
        return all(name in self.by_name for name in arguments)

    def paths(self, arguments: JsonObject) -> tuple[str, ...]:
        """The paths that the call names, the directory to run in included."""
        return tuple(path for _, path in self._located(arguments))

    def text(self, role: Role, arguments: JsonObject) -> str | None:
        """The text of the first parameter in that role; None where there is none."""
        values = (arguments.get(name) for name, one in self.by_name.items() if one is role)
        return next((value for value in values if isinstance(value, str)), None)

    def line(self, arguments: JsonObject) -> int | None:
        """The line, from 1, at which the call looks."""
        for name, role in self.by_name.items():
            line = whole_argument(arguments, name) if role is Role.LINE else None
            if line is not None and 1 <= line <= LINE_LIMIT:
                return line
        return None

    def command_line(self, arguments: JsonObject) -> str:
        """The command as a person would type it; empty where the call names none."""
        return Command.of(self.text(Role.COMMAND, arguments) or "", self._words(arguments), "").line

    def command(self, arguments: JsonObject, located: Sequence[str], cwd: str) -> Command | None:
        """The program or shell line that the call would run; None where the arguments are not of that form.

        `located` are the absolute paths that `paths` lead to, in that order; `cwd` is the session's directory.
        """
        line, words = self.text(Role.COMMAND, arguments), self._words(arguments)
        if line is None or not line.strip() or not self._has_plain_words(arguments, words):
            return None
        return Command.of(line, words, self.directory(arguments, located, cwd))

    def directory(self, arguments: JsonObject, located: Sequence[str], cwd: str) -> str:
        """The directory in which the command would run; arguments as for `command`."""
        named = zip(self._located(arguments), located, strict=False)
        return next((where for (role, _), where in named if role is Role.CWD), cwd)

    def change(self, arguments: JsonObject) -> Change:
        """The texts of the change that the call proposes."""
        roles = (Role.CONTENT, Role.OLD_TEXT, Role.NEW_TEXT, Role.PATCH)
        return Change(*(self.text(role, arguments) for role in roles))

    def parts(self, arguments: JsonObject) -> Mapping[str, str]:
        """The texts that a title may show: by the parameter's name, and as `path`, `command`, `query` and `url`."""
        parts = {name: value for name, value in arguments.items() if isinstance(value, str)}
        for role in (Role.QUERY, Role.URL):
            text = self.text(role, arguments)
            if text is not None:
                parts[role.value] = text
        if Role.COMMAND in self:
            parts["command"] = self.command_line(arguments)
        for role, path in self._located(arguments):
            if role is not Role.CWD:
                parts.setdefault("path", path)
        return parts

    def _located(self, arguments: JsonObject) -> Iterator[tuple[Role, str]]:
        for name, role in self.by_name.items():
            if role.access is not None:
                yield from ((role, path) for path in _texts(arguments.get(name)))

    def _words(self, arguments: JsonObject) -> tuple[str, ...] | None:
        names = (name for name, role in self.by_name.items() if role is Role.ARGV)
        return next((words for name in names if (words := words_argument(arguments, name)) is not None), None)

    def _has_plain_words(self, arguments: JsonObject, words: tuple[str, ...] | None) -> bool:
        given = [arguments.get(name) for name, role in self.by_name.items() if role is Role.ARGV]
        return all(value is None or value == words for value in given)


def _texts(value: JsonValue) -> Iterator[str]:
    if isinstance(value, str):
        yield from (value,) if value else ()
    elif isinstance(value, tuple):
        yield from (item for item in value if isinstance(item, str))
