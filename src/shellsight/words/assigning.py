"""Assignments, and the variables that may be set without an effect on what programs do."""

from __future__ import annotations

import re

from shellsight.line import Assignment
from shellsight.report import Standing
from shellsight.words.arguments import Arg, names, prefixes

HARMLESS = names(
    "LC_ALL LC_CTYPE LC_COLLATE LC_NUMERIC LC_TIME LC_MESSAGES LANG LANGUAGE NO_COLOR TERM CI FORCE_COLOR "
    "CLICOLOR CLICOLOR_FORCE COLUMNS LINES TZ PYTHONUNBUFFERED PYTHONDONTWRITEBYTECODE PYTHONHASHSEED "
    "PYTHONIOENCODING PYTHONUTF8 RUST_BACKTRACE NODE_ENV DEBIAN_FRONTEND COLORTERM CARGO_TERM_COLOR "
    "PY_COLORS SOURCE_DATE_EPOCH GIT_OPTIONAL_LOCKS"
)
"""Variables that may be set before a command: they change how it prints, not what it does."""

_OWN = re.compile(r"[a-z_][a-z0-9_]*\Z|[A-Z]\Z")
_EXPORTED = names("path cdpath fpath manpath mailpath module_path prompt ifs psvar home fignore")
_TELLING = prefixes("_proxy npm_ pip_ uv_ git_ ld_ dyld_ python node_ bash_ _")


def standing_of(assignment: Assignment, *, alone: bool) -> tuple[Standing, str]:
    """The standing of an assignment, and its reason; `alone`: no command follows, so only a variable is filled."""
    name = assignment.name
    if assignment.value is not None and is_harmless(name, assignment.value.text):
        return Standing.SAFE, ""
    if alone and is_own(name):
        return Standing.SAFE, "fills a variable of this line"
    if name in _PAGERS and assignment.value is not None and assignment.value.text in {"", "cat"}:
        return Standing.SAFE, "turns a pager off"
    return Standing.DANGEROUS, f"sets {name}, which may change what programs do"


def is_harmless(name: str, value: str | None) -> bool:
    """Whether this value of the variable changes at most how a program prints; None: the value is not known."""
    return name in HARMLESS and value is not None and not value.startswith(("/", ":", "~")) and ".." not in value


def is_own(name: str) -> bool:
    """Whether a variable of that name is one of the line's own: no program looks at it."""
    if name in _FREE:
        return True
    own = _OWN.match(name) and name not in _EXPORTED
    return bool(own) and (name == "_" or not name.startswith(_TELLING)) and not name.endswith("_proxy")


_PAGERS = frozenset({"GIT_PAGER", "PAGER"})
_FREE = names("FILE FILES DIR DIRS NAME COUNT N LINE SRC OUT RESULT VERSION BRANCH")


def values_of(assignment: Assignment, value: Arg | None, before: tuple[Arg, ...] | None) -> tuple[Arg, ...] | None:
    """The values of the variable afterwards; None where they are not known."""
    if value is None:
        return None
    if not assignment.append:
        return (value,)
    if before is None or not value.certain or not all(arg.certain for arg in before):
        return None
    return tuple(Arg(arg.text + value.text, ran=arg.ran or value.ran) for arg in before)
