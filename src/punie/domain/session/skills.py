"""Skills: folders with a SKILL.md (the open Agent Skills format), listed in a line each and loaded when needed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from attrs import frozen

from punie.domain.session.commands import FRONT_MATTER
from punie.domain.values.display import one_line

SKILLS_LIMIT = 64
"""The most skills that a session offers."""

LINE_CHARS = 300
LINES_CHARS = 12_000
"""The characters of the instructions that the lines of all skills may take."""

DESCRIPTION_CHARS = 1_024
"""The longest description that the format allows."""

_NAME = re.compile(r"(?=.{1,64}\Z)[a-z0-9]+(-[a-z0-9]+)*")

_ENTRY = re.compile(r"(?P<key>[A-Za-z][\w-]*)[ \t]*:(?:[ \t]+(?P<value>.*))?")
_BLOCK = re.compile(r"[|>][+-]?\d?")


class BrokenSkillError(ValueError):
    """A SKILL.md makes no skill; the message says what is wrong with it."""


@frozen
class Skill:
    """One skill; `folder` is absolute, with its links followed. Its words are as little trusted as any file's."""

    name: str
    description: str
    folder: str


@frozen
class SkillText:
    """The text of a skill without its front matter, and the files beside it, by absolute path."""

    skill: Skill
    body: str
    files: tuple[str, ...] = ()
    more_files: bool = False


def skill_of(folder: str, text: str) -> SkillText:
    """The skill that a SKILL.md makes. Raises `BrokenSkillError`."""
    plain = text.lstrip("\ufeff").replace("\r\n", "\n")
    head = FRONT_MATTER.match(plain)
    if head is None:
        raise BrokenSkillError("it does not begin with a head between two lines of ---")
    said = _entries(head["head"])
    name, description = said.get("name", ""), said.get("description", "").strip()
    if not _NAME.fullmatch(name):
        raise BrokenSkillError("name must be 1 to 64 of a-z, 0-9 and single hyphens between them")
    if not 0 < len(description) <= DESCRIPTION_CHARS:
        raise BrokenSkillError(f"description must have 1 to {DESCRIPTION_CHARS} characters")
    return SkillText(Skill(name, description, folder), plain[head.end() :].strip())


def skill_lines(skills: Iterable[Skill]) -> str:
    """One line a skill, in their order, as far as there is room."""
    lines: list[str] = []
    room = LINES_CHARS
    for skill in skills:
        line = f"- {skill.name}: {one_line(skill.description, LINE_CHARS)}"
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    return "\n".join(lines)


def _entries(head: str) -> dict[str, str]:
    """The texts of the front matter by key, without nested ones: as much of YAML as the format needs."""
    found: dict[str, str] = {}
    lines = head.split("\n")
    for number, line in enumerate(lines):
        entry = _ENTRY.fullmatch(line.rstrip())
        if entry is not None:
            below = list(_indented(lines[number + 1 :]))
            found.setdefault(entry["key"], _value((entry["value"] or "").strip(), below))
    return found


def _indented(lines: Iterable[str]) -> Iterator[str]:
    for line in lines:
        if line.strip() and not line.startswith((" ", "\t")):
            return
        yield line.strip()


def _value(value: str, below: list[str]) -> str:
    if _BLOCK.fullmatch(value):
        return ("\n" if value.startswith("|") else " ").join(below).strip()
    whole = " ".join((value, *below)).strip()
    if len(whole) > 1 and whole[0] == whole[-1] == '"':
        return whole[1:-1].replace('\\"', '"').replace("\\\\", "\\")
    if len(whole) > 1 and whole[0] == whole[-1] == "'":
        return whole[1:-1].replace("''", "'")
    return re.sub(r"(?:^|\s)#.*", "", whole)
