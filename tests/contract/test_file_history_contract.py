"""What every history of files promises."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from punie.domain.errors import ToolFailedError
from punie.ports.history import ABSENT, FileChange, FileHistory, FileVersion
from tests.contract.tables import FILE_HISTORIES

pytestmark = pytest.mark.anyio
Make = Callable[[str | None], FileHistory]


@pytest.fixture(params=FILE_HISTORIES.values(), ids=[kind.__name__ for kind in FILE_HISTORIES])
def make(request: pytest.FixtureRequest) -> Make:
    found: Make = request.param
    return found


@pytest.mark.parametrize("kept", [True, False])
async def test_a_version_comes_back_whatever_it_was(make: Make, tmp_path: Path, *, kept: bool) -> None:
    history, file, link = make(str(tmp_path / "state/s1") if kept else None), tmp_path / "f", tmp_path / "l"
    file.write_bytes(b"\0\xff")
    file.chmod(0o750)
    link.symlink_to("nowhere")
    for path in (str(file), str(link)):
        was = await history.look(path)
        await history.put(path, FileVersion())
        assert not os.path.lexists(path)
        left = await history.look(path)
        assert left.key == ABSENT
        await history.record(FileChange("t", path, was.key, left.key), was, left)
        found = await history.version(was.key)
        assert found == was
        assert found is not None
        await history.put(path, found)
        assert await history.look(path) == was
    assert (stat.S_IMODE(file.stat().st_mode), link.readlink()) == (0o750, Path("nowhere"))
    assert [change.path for change in await history.changes()] == [str(file), str(link)]


async def test_another_process_finds_the_same_history_and_only_this_user_reads_it(make: Make, tmp_path: Path) -> None:
    folder, file = tmp_path / "state/s1", tmp_path / "f"
    history = make(str(folder))
    file.write_text("one")
    was = await history.look(str(file))
    file.write_text("two")
    left = await history.look(str(file))
    change = FileChange("t", str(file), was.key, left.key)
    await history.record(change, was, left)
    other = make(str(folder))
    assert (await other.changes(), await other.version(was.key)) == ((change,), was)
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}


async def test_a_damaged_journal_or_content_is_left_out(make: Make, tmp_path: Path) -> None:
    folder = tmp_path / "s1"
    folder.mkdir()
    (folder / "changes.jsonl").write_text('{"turn": 1\n{"a": "b"}\n')
    history = make(str(folder))
    assert await history.changes() == ()
    was = FileVersion(0o100644, b"x")
    (folder / was.key.partition(" ")[2]).write_bytes(b"y")
    assert await history.version(was.key) is None


async def test_a_folder_in_the_way_is_an_error_and_stays(make: Make, tmp_path: Path) -> None:
    (tmp_path / "f").mkdir()
    with pytest.raises(ToolFailedError):
        await make(None).put(str(tmp_path / "f"), FileVersion(0o100644, b"x"))
    assert (tmp_path / "f").is_dir()


async def test_a_link_that_was_put_on_the_way_is_not_followed_and_no_draft_is_left(make: Make, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    with pytest.raises(ToolFailedError):
        await make(None).put(str(tmp_path / "link/f"), FileVersion(0o100644, b"x"))
    (tmp_path / "real/folder").mkdir()
    with pytest.raises(ToolFailedError):
        await make(None).put(str(tmp_path / "real/folder"), FileVersion(0o100644, b"x"))
    assert [path.name for path in (tmp_path / "real").iterdir()] == ["folder"]
