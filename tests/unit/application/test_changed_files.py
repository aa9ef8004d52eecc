"""The list of what the turns of a session changed: whose change each one is, and how large."""

from __future__ import annotations

from pathlib import Path

import pytest

from punie.adapters.local.files.file_history import LocalFileHistory
from punie.application.sessions.changed_files import changed_files, net_changes
from punie.ports.history import ChangedBy, FileChange, FileVersion

pytestmark = pytest.mark.anyio

NOTHING = FileVersion()
TURNS = ("t1", "t2", "t3")


def text(content: str) -> FileVersion:
    return FileVersion(0o100644, content.encode())


class Told:
    """A history in memory, with the changes of a test."""

    def __init__(self) -> None:
        self.history = LocalFileHistory(None)

    async def add(
        self, turn: str, path: str, was: FileVersion, left: FileVersion, by: ChangedBy = "tool", tool: str = "edit_file"
    ) -> None:
        await self.history.record(FileChange(turn, path, was.key, left.key, by, tool), was, left)

    async def rows(self, turn: int | None = None) -> list[tuple[object, ...]]:
        found = await changed_files(self.history, TURNS, turn)
        return [(row.turn, Path(row.path).name, row.change, row.by, row.tool, row.added, row.removed) for row in found]


async def test_each_change_has_its_turn_its_maker_and_its_lines(tmp_path: Path) -> None:
    told, path = Told(), str(tmp_path / "a")
    await told.add("t1", path, NOTHING, text("1\n"), tool="write_file")
    await told.add("t2", path, text("1\n"), text("2\n"))
    await told.add("t2", path, text("2\n"), text("2\n3\n"))
    await told.add("t2", path, text("2\n3\n"), text("3\n"), "command", "run_command")
    Path(path).write_text("3\n")
    assert await told.rows() == [
        (1, "a", "created", "tool", "write_file", 1, 0),
        (2, "a", "modified", "tool", "edit_file", 2, 1),
        (2, "a", "modified", "command", "run_command", 0, 1),
    ]
    assert len(await told.rows(1)) == 1
    assert await net_changes(told.history, TURNS) == {path: (NOTHING.key, text("3\n").key)}
    assert await net_changes(told.history, TURNS, 2) == {path: (text("1\n").key, text("3\n").key)}


async def test_what_was_changed_in_between_or_since_is_a_persons(tmp_path: Path) -> None:
    told, path = Told(), str(tmp_path / "a")
    await told.add("t1", path, text("1\n"), text("2\n"))
    await told.add("t2", path, text("mine\n"), text("3\n"))
    await told.add("t2", path, text("3\n"), text("yours\n"), "person", "")
    Path(path).write_text("yours\nsince\n")
    assert await told.rows() == [
        (1, "a", "modified", "tool", "edit_file", 1, 1),
        (2, "a", "modified", "person", "", 1, 1),
        (2, "a", "modified", "tool", "edit_file", 1, 1),
        (2, "a", "modified", "person", "", 1, 1),
        (3, "a", "modified", "person", "", 1, 0),
    ]
    assert await net_changes(told.history, TURNS) == {path: (text("1\n").key, text("3\n").key)}


async def test_what_came_to_nothing_is_no_change_and_what_has_no_lines_has_no_numbers(tmp_path: Path) -> None:
    told = Told()
    same, binary, folder, large = (str(tmp_path / name) for name in ("same", "binary", "folder", "large"))
    await told.add("t1", same, text("1\n"), text("2\n"))
    await told.add("t1", same, text("2\n"), text("1\n"))
    Path(same).write_text("1\n")
    await told.add("", binary, NOTHING, text("\0"))
    Path(binary).write_text("\0")
    await told.add("t1", folder, NOTHING, FileVersion(0o040755))
    Path(folder).mkdir()
    await told.add("t1", large, text("1\n"), FileVersion(0o100644))
    Path(large).write_text("x")
    assert await told.rows() == [
        (1, "binary", "created", "tool", "edit_file", None, None),
        (1, "large", "modified", "tool", "edit_file", None, None),
    ]
    await told.add("t2", binary, text("\0"), NOTHING, "command", "run_command")
    Path(binary).unlink()
    assert (await told.rows(2)) == [(2, "binary", "deleted", "command", "run_command", None, None)]
