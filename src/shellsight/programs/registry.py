"""Every program that something is known of."""

from __future__ import annotations

from collections.abc import Mapping

from shellsight.programs import (
    archives,
    building,
    builtins,
    files,
    git,
    inspecting,
    languages,
    listing,
    machines,
    packages,
    reading,
    remote,
    searching,
    shells,
    text,
    told,
    viewing,
    wrapping,
)
from shellsight.words.call import Judge

_FAMILIES = (
    *(building, packages, languages, machines, remote, archives, viewing, files),
    *(builtins, reading, searching, text, git, shells, wrapping, listing),
)
_PACKERS = {name: archives.TABLE[name] for name in ("7z", "7za", "unrar")} | {"ar": building.TABLE["ar"]}
_KNOWN: Mapping[str, Judge] = {
    **{name: judge for family in _FAMILIES for name, judge in family.TABLE.items()},
    **{name: listing.listed(name, judge) for name, judge in _PACKERS.items()},
    "unzip": listing.printed(archives.TABLE["unzip"]),
    "colordiff": reading.TABLE["diff"],
}
PROGRAMS: Mapping[str, Judge] = inspecting.laid_over(told.laid_over(_KNOWN))


def judge_of(name: str) -> Judge | None:
    """Who judges calls of the program with this plain name; None where nothing is known of it."""
    return PROGRAMS.get(name)
