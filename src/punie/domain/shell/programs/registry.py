"""Every program that something is known of."""

from __future__ import annotations

from collections.abc import Mapping

from punie.domain.shell.call import Judge
from punie.domain.shell.programs import (
    archives,
    building,
    builtins,
    files,
    git,
    languages,
    machines,
    packages,
    reading,
    remote,
    searching,
    shells,
    text,
    viewing,
    wrapping,
)

_FAMILIES = (
    *(building, packages, languages, machines, remote, archives, viewing, files),
    *(builtins, reading, searching, text, git, shells, wrapping),
)
PROGRAMS: Mapping[str, Judge] = {name: judge for family in _FAMILIES for name, judge in family.TABLE.items()}


def judge_of(name: str) -> Judge | None:
    """Who judges calls of the program with this plain name; None where nothing is known of it."""
    return PROGRAMS.get(name)
