"""The files that the turns of a session changed: by whom, how, and by how much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve, frozen

from punie.domain.session.log import PromptAccepted
from punie.mechanics.git_patch import KIND, Content
from punie.mechanics.line_diff import line_counts
from punie.ports.history import ABSENT, OTHER, ChangedBy, FileHistory, FileVersion
from punie.ports.sessions import SessionStore

FOLDER_KIND = 0o040_000
PAGE = 500
COUNTED_BYTES = 2_000_000
"""Lines of larger contents are not counted."""


@frozen
class ChangedFile:
    """The change of one file by one tool in one turn; `was` and `left` are the keys of its contents in the history.

    `turn` counts from 1, and is 0 where it is not known. `tool` is empty for a person. `added` and `removed` are
    lines, None where a content is not known, is no text or is too large.
    """

    turn: int
    path: str
    by: ChangedBy
    tool: str
    was: str
    left: str
    added: int | None = None
    removed: int | None = None

    @property
    def change(self) -> str:
        """`created`, `modified` or `deleted`."""
        if self.was == ABSENT:
            return "created"
        return "deleted" if self.left == ABSENT else "modified"


async def turns_of(store: SessionStore, session_id: str) -> tuple[str, ...]:
    """The ids of the session's turns, in their order. Raises `SessionStoreError`."""
    turns, after = list[str](), 0
    while page := await store.read(session_id, after, PAGE):
        turns += [entry.event.turn_id for entry in page if isinstance(entry.event, PromptAccepted)]
        after = page[-1].sequence
    return tuple(turns)


async def changed_files(history: FileHistory, turns: Sequence[str], turn: int | None = None) -> tuple[ChangedFile, ...]:
    """The changes of all turns, or of the one with that number, in their order.

    Consecutive changes of a file by one tool in one turn are one. A change that the session did not make counts as a
    person's: in the turn before whose next change it was seen, or in the last one.
    """
    made: dict[str, list[ChangedFile]] = {}
    for one in await _steps(history, turns):
        rows = made.setdefault(one.path, [])
        last = rows[-1] if rows else None
        if last is not None and (last.turn, last.by, last.tool) == (one.turn, one.by, one.tool):
            rows[-1] = evolve(last, left=one.left)
        else:
            rows.append(one)
    found = [row for rows in made.values() for row in rows if row.was != row.left and turn in {None, row.turn}]
    found.sort(key=lambda row: row.turn)
    return tuple([await _counted(history, row) for row in found])


async def net_changes(
    history: FileHistory, turns: Sequence[str], turn: int | None = None
) -> Mapping[str, tuple[str, str]]:
    """For each file that the session changed the keys of its contents before its first and after its last change.

    With `turn` those of that turn. What others changed after the last change is no part of it.
    """
    numbers = {turn_id: number for number, turn_id in enumerate(turns, start=1)}
    net: dict[str, tuple[str, str]] = {}
    for one in await history.changes():
        if one.by != "person" and turn in {None, numbers.get(one.turn, 0)}:
            net[one.path] = (net.get(one.path, (one.was,))[0], one.left)
    return {path: (was, left) for path, (was, left) in net.items() if was != left}


def content_of(version: FileVersion) -> Content | None:
    """The content of a version that is known; None for no file."""
    return None if version.data is None else Content(version.mode, version.data)


async def _steps(history: FileHistory, turns: Sequence[str]) -> list[ChangedFile]:
    """Every change, with those of persons that show between two changes of the session and after the last one."""
    numbers = {turn_id: number for number, turn_id in enumerate(turns, start=1)}
    steps, left, number = list[ChangedFile](), dict[str, str](), 0
    for one in await history.changes():
        number = numbers.get(one.turn, number)
        before = left.get(one.path, one.was)
        if before != one.was:
            steps.append(ChangedFile(number, one.path, "person", "", before, one.was))
        steps.append(ChangedFile(number, one.path, one.by, one.tool, one.was, one.left))
        left[one.path] = one.left
    for path, key in left.items():
        now = await history.look(path)
        if now.mode & KIND == FOLDER_KIND:
            steps = [step for step in steps if step.path != path]
        elif OTHER not in {key, now.key} and now.key != key:
            steps.append(ChangedFile(len(turns), path, "person", "", key, now.key))
    return steps


async def _counted(history: FileHistory, row: ChangedFile) -> ChangedFile:
    versions = [
        await history.version(key) or (await history.look(row.path) if row.by == "person" else None)
        for key in (row.was, row.left)
    ]
    texts = [_text(version) for version in versions]
    if texts[0] is None or texts[1] is None:
        return row
    added, removed = line_counts(texts[0], texts[1])
    return evolve(row, added=added, removed=removed)


def _text(version: FileVersion | None) -> str | None:
    """The text to count the lines of; empty for no file, None for what has no lines."""
    if version is None or version.key == OTHER:
        return None
    content = content_of(version)
    if content is None:
        return ""
    return None if content.is_binary or len(content.data) > COUNTED_BYTES else content.text
