"""Skills from this machine's disk: folders with a SKILL.md."""

from __future__ import annotations

import logging
import os
from collections.abc import Iterator
from pathlib import PurePath

import anyio
import anyio.to_thread
from attrs import define, field

from punie.adapters.local.files.folders import names_in, open_file, opened_folder, read_at_most
from punie.adapters.local.files.path_guard import resolve
from punie.domain.errors import ToolFailedError
from punie.domain.session.skills import SKILLS_LIMIT, BrokenSkillError, Skill, SkillText, skill_of
from punie.domain.values.display import one_line
from punie.domain.values.paths import is_inside
from punie.ports.workspace import SkillShelf

OF_A_PROJECT = (".punie/skills", ".agents/skills")
FILE = "SKILL.md"
MAX_BYTES = 65_536
NAMES_LIMIT = 1_000
FILES_LIMIT = 100
FOLDERS_LIMIT = 200
"""Folders of one skill that are looked through for its files."""


@define
class LocalSkills(SkillShelf):
    """The user's skills in `own_folder`, then those of the session's directories; the first of a name has it.

    A project's are read as its AGENTS.md is: a link that leads out of that directory counts as none. The user's own
    may be links to wherever the user keeps them.
    """

    own_folder: str | None
    directories: tuple[str, ...]
    log: logging.Logger
    _found: tuple[Skill, ...] | None = field(default=None, init=False)
    _looking: anyio.Lock = field(factory=anyio.Lock, init=False)

    async def skills(self) -> tuple[Skill, ...]:
        async with self._looking:
            if self._found is None:
                self._found = await anyio.to_thread.run_sync(self._look)
        return self._found

    async def load(self, skill: Skill) -> SkillText:
        try:
            return await anyio.to_thread.run_sync(_whole, skill.folder)
        except (OSError, BrokenSkillError) as error:
            raise ToolFailedError(f"The skill {skill.name} cannot be read any more: {_why(error)}.") from error

    def _look(self) -> tuple[Skill, ...]:
        found: dict[str, Skill] = {}
        for folder in self._folders():
            try:
                skill = _read(folder).skill
            except FileNotFoundError:
                continue  # a folder without a SKILL.md is none of ours
            except (OSError, BrokenSkillError) as error:
                self.log.warning("the skill in %s is left out: %s", folder, one_line(_why(error), 200))
                continue
            if skill.name in found:
                self.log.info("the skill in %s is left out: %s has its name", folder, found[skill.name].folder)
            elif len(found) >= SKILLS_LIMIT:
                self.log.warning("the skill in %s is left out: there are %d before it", folder, SKILLS_LIMIT)
            else:
                found[skill.name] = skill
        return tuple(found.values())

    def _folders(self) -> Iterator[str]:
        if self.own_folder is not None:
            yield from _below(self.own_folder, None)
        for directory in self.directories:
            root = resolve(directory)
            for place in OF_A_PROJECT if root is not None else ():
                yield from _below(str(PurePath(directory) / place), root)


def _below(place: str, root: str | None) -> Iterator[str]:
    """The folders in a place, by name, their links followed; with a root only those that lie in it."""
    resolved = resolve(place)
    if resolved is None or (root is not None and not is_inside(resolved, (root,))):
        return
    try:
        with opened_folder(resolved) as opened:
            names = sorted(names_in(opened, NAMES_LIMIT))
    except (OSError, NotImplementedError):  # there is none, or this system has no folders by descriptor
        return
    for name in names:
        folder = resolve(str(PurePath(resolved) / name))
        if folder is not None and (root is None or is_inside(folder, (root,))):
            yield folder


def _read(folder: str) -> SkillText:
    try:
        with opened_folder(folder) as opened:
            return _said(folder, opened)
    except NotADirectoryError as error:
        raise FileNotFoundError(folder) from error


def _whole(folder: str) -> SkillText:
    text = _read(folder)
    files = [path for path in _files(folder) if path != str(PurePath(folder) / FILE)]
    return SkillText(text.skill, text.body, tuple(files[:FILES_LIMIT]), len(files) > FILES_LIMIT)


def _said(folder: str, opened: int) -> SkillText:
    descriptor = open_file(opened, FILE)
    try:
        content = read_at_most(descriptor, MAX_BYTES)
    finally:
        os.close(descriptor)
    if len(content) > MAX_BYTES:
        raise BrokenSkillError(f"its {FILE} has more than {MAX_BYTES} bytes")
    try:
        return skill_of(folder, content.decode("utf-8"))
    except UnicodeDecodeError:
        raise BrokenSkillError(f"its {FILE} is no UTF-8") from None


def _files(folder: str) -> list[str]:
    """Paths of the files in a skill's folder, in order; no link is followed, and nothing hidden is told of."""
    found: list[str] = []
    ahead, looked = [folder], 0
    while ahead and looked < FOLDERS_LIMIT and len(found) <= FILES_LIMIT:
        current, looked = ahead.pop(0), looked + 1
        try:
            with os.scandir(current) as entries:
                listed = sorted(
                    (entry.name, entry.is_dir(follow_symlinks=False), entry.is_file(follow_symlinks=False))
                    for entry, _ in zip(entries, range(NAMES_LIMIT), strict=False)
                )
        except OSError:
            continue
        shown = [one for one in listed if not one[0].startswith(".")]
        found += [str(PurePath(current) / name) for name, _, is_file in shown if is_file]
        ahead += [str(PurePath(current) / name) for name, is_folder, _ in shown if is_folder]
    return found


def _why(error: Exception) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
