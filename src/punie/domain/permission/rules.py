"""Verdicts, modes, and a person's rules: the calls that a rule is about, and the rules that would be too wide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from fnmatch import fnmatchcase

from attrs import field, frozen

from punie.domain.tools.tool import ToolDescriptor, ToolSource


class Verdict(StrEnum):
    """The policy's answer on one call, or on one part of a command."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    @property
    def strictness(self) -> int:
        """0 for allow, 1 for ask, 2 for deny: the strictest of several wins."""
        return _STRICTNESS[self]


_STRICTNESS: Mapping[Verdict, int] = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}


class AnsweredBy(StrEnum):
    """The source of the final verdict; `nobody` where a question got no answer."""

    POLICY = "policy"
    GRANT = "grant"
    PERSON = "person"
    NOBODY = "nobody"


class Mode(StrEnum):
    """The modes of a session, by how much it may do without a question; the strictest first."""

    READ_ONLY = "read-only"
    ASK = "ask"
    ACCEPT_EDITS = "accept-edits"
    AUTO = "auto"

    @property
    def looseness(self) -> int:
        """0 for the strictest."""
        return tuple(Mode).index(self)


Words = tuple[str, ...]

INTERPRETERS = re.compile(
    r"(?:python|pypy|node|nodejs|deno|bun|ruby|irb|perl|php|lua|luajit|tclsh|rscript|julia|osascript|pwsh|powershell"
    r"|sh|bash|dash|zsh|ksh|mksh|ash|fish|csh|tcsh|awk|gawk|mawk|nawk|npx|uvx|pipx|bunx|source|\.)[0-9.]*(?:\.exe)?"
)
"""Programs that run whatever their arguments say: a prefix that stops at their name allows everything."""

WRAPPERS = frozenset(
    {
        "sudo", "doas", "su", "runuser", "env", "xargs", "parallel", "nice", "nohup", "timeout", "time", "watch",
        "setsid", "ionice", "chrt", "taskset", "stdbuf", "unbuffer", "script", "strace", "ltrace", "gdb", "flock",
        "command", "builtin", "exec", "eval", "chroot", "unshare", "nsenter", "busybox", "ssh", "trap", "entr",
    }
)  # fmt: skip
"""Programs that start another program: a rule is about the program that they start."""

_STARTERS = {"uv": "run", "poetry": "run", "pdm": "run", "hatch": "run", "npm": "exec", "pnpm": "exec", "yarn": "exec"}


@frozen
class Rule:
    """One rule. `tool` is a glob over the qualified name; `command` an argv prefix, each place a choice of words.

    `path` is a pattern as in `values.paths`, `server` a glob over MCP servers' names, `host` one over hosts, with
    `:PORT` for ports but 80 and 443, `modes` are those in which the rule holds (empty: all), `who` is the one person or
    group whose sessions it is for. `origin` is the file or flag that it comes from, `id` its name in a decision. A
    command that a rule allows runs in a box unless the rule's `boxed` is false.
    """

    decision: Verdict
    tool: str = "*"
    command: tuple[Words, ...] | None = None
    path: str | None = None
    server: str | None = None
    modes: frozenset[Mode] = field(default=frozenset(), converter=frozenset)
    reason: str = ""
    origin: str = ""
    id: str = ""
    boxed: bool = True
    host: str | None = None
    who: str | None = None

    @property
    def place(self) -> tuple[str, ...]:
        """The rule's key for sorting: a total order over all rules."""
        words = (word for choice in self.command or () for word in ("", *choice))
        modes = sorted(mode.value for mode in self.modes)
        return (
            self.id,
            self.decision,
            self.tool,
            self.path or "",
            self.server or "",
            self.host or "",
            self.who or "",
            self.reason,
            str(self.boxed),
            *modes,
            *words,
        )

    @property
    def allows(self) -> bool:
        """Whether this is an allow rule, which is read narrowly; the others are read widely."""
        return self.decision is Verdict.ALLOW

    def concerns(self, tool: ToolDescriptor, mode: Mode) -> bool:
        """Whether the rule is about that tool in that mode, by names alone."""
        if self.modes and mode not in self.modes:
            return False
        return (self.tool in {"*", tool.name} or fnmatchcase(tool.name, self.tool)) and self._serves(tool)

    @property
    def names_tool(self) -> bool:
        """Whether the rule names its tool instead of covering it by a wild card, which its server's name may have."""
        return not set("*?[") & set(self.tool.rpartition("__")[2])

    def begins(self, argv: Words) -> bool:
        """Whether the rule's command is a prefix of these words."""
        wanted = self.command or ()
        return len(argv) >= len(wanted) and all(word in choice for word, choice in zip(argv, wanted, strict=False))

    def reaches(self, argv: Words) -> bool:
        """Whether the rule's command is in these words once options, their values and variables are passed over.

        For rules that tighten: `npm -s --prefix x test` is `npm test`. A program's name counts in any case.
        """
        wanted = self.command or ()
        if not wanted or not argv or not any(argv[0].lower() == word.lower() for word in wanted[0]):
            return False
        places = {1}
        for choice in wanted[1:]:
            places = {place + 1 for place in _passing(argv, places) if argv[place] in choice}
        return bool(places)

    def starts(self, *forms: Words) -> bool:
        """Whether the rule's command begins with the program of one of these forms."""
        return bool(self.command) and any(form[:1] and form[0] in self.command[0] for form in forms)

    def _serves(self, tool: ToolDescriptor) -> bool:
        if self.server is None:
            return True
        if tool.source is not ToolSource.MCP:
            return False
        # `a__b__c` may be tool `c` of server `a__b`, or `b__c` of `a`: only certain names loosen, any name tightens.
        hits = [fnmatchcase(server, self.server) for server in _servers(tool.name)]
        return bool(hits) and (all(hits) if self.allows else any(hits))


def _passing(argv: Words, starts: set[int]) -> Iterator[int]:
    """The places of a command's next word: a start, or a place behind options with or without a value. One pass."""
    before = False
    here = False
    for place in range(min(starts, default=len(argv)), len(argv)):
        passed = here and (_is_option(argv[place - 1]) or (before and _is_option(argv[place - 2])))
        before, here = here, passed or place in starts
        if here:
            yield place


def _is_option(word: str) -> bool:
    return word.startswith("-") or "=" in word


def _servers(name: str) -> tuple[str, ...]:
    return tuple(name[: found.start()] for found in re.finditer("(?=__)", name))


def too_wide(rule: Rule) -> str | None:
    """The reason why an allow rule's command would allow any program, with advice; None where it would not."""
    if not rule.allows or rule.command is None:
        return None
    for program in rule.command[0]:
        name = program.replace("\\", "/").rpartition("/")[2].lower()
        if name in WRAPPERS:
            return f"{program} starts other programs; write the rule for the program that it starts"
        if INTERPRETERS.fullmatch(name) and not _names_program(rule.command[1:]):
            return f"{program} runs whatever its arguments say; name the script, or -m and the module, that follow"
        starter = _STARTERS.get(name)
        if starter is not None and _may_be(rule.command[1:2], starter) and not _names_program(rule.command[2:]):
            return f"{program} {starter} starts other programs; name the one that follows"
    return None


def _may_be(places: tuple[Words, ...], word: str) -> bool:
    """Whether the place may hold that word; behind the end of a prefix any word may follow."""
    return not places or word in places[0]


def _names_program(following: tuple[Words, ...]) -> bool:
    if not following:
        return False
    first, rest = following[0], following[1:]
    if first == ("-m",):
        return bool(rest) and _plain(rest[0])
    return _plain(first)


def _plain(words: Iterable[str]) -> bool:
    return all(word and not word.startswith(("-", "@", "{")) for word in words)
