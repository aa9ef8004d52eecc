"""AGENTS.md is read from disk, at most 32 KiB of it, and a missing one is silent (INTERFACES.md section 4)."""

from __future__ import annotations

import os
from pathlib import Path

import anyio
import pytest

from punie.adapters.local.path_guard import LocalPathGuard
from punie.adapters.local.project_notes import MAX_BYTES, LocalProjectNotes
from punie.ports.project_notes import ProjectNotes

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(os.name != "posix", reason="links and pipes are POSIX here")]


async def notes_of(folder: Path) -> str | None:
    notes: ProjectNotes = LocalProjectNotes(LocalPathGuard((str(folder),), str(folder)), str(folder))
    with anyio.fail_after(5):
        return await notes.read()


async def test_the_text_is_read_and_trimmed(tmp_path: Path) -> None:
    (tmp_path / "AGENTS.md").write_text("\nUse tabs — naïvely.\n\n", encoding="utf-8")
    assert await notes_of(tmp_path) == "Use tabs — naïvely."


@pytest.mark.parametrize("content", [b"", b" \n\t\n", b"\xff\xfe\xff"])
async def test_no_text_is_no_notes(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "AGENTS.md").write_bytes(content)
    assert await notes_of(tmp_path) is None


async def test_a_long_text_is_cut_at_the_limit_and_no_character_is_torn(tmp_path: Path) -> None:
    assert MAX_BYTES == 32 * 1024
    (tmp_path / "AGENTS.md").write_bytes(b"a" + "é".encode() * MAX_BYTES)
    text = await notes_of(tmp_path)
    assert text == "a" + "é" * ((MAX_BYTES - 1) // 2)


async def test_a_missing_file_and_a_missing_folder_are_silent(tmp_path: Path) -> None:
    assert await notes_of(tmp_path) is None
    assert await notes_of(tmp_path / "none") is None


async def test_a_folder_or_a_pipe_of_that_name_is_no_notes_and_is_not_waited_for(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "AGENTS.md").mkdir()
    (tmp_path / "b").mkdir()
    os.mkfifo(tmp_path / "b" / "AGENTS.md")
    assert await notes_of(tmp_path / "a") is None
    assert await notes_of(tmp_path / "b") is None


async def test_a_link_is_followed_inside_the_project_and_nowhere_else(tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "docs").mkdir(parents=True)
    (project / "docs" / "notes.md").write_text("inside")
    (tmp_path / "secret").write_text("outside")
    (project / "AGENTS.md").symlink_to("docs/notes.md")
    assert await notes_of(project) == "inside"
    (project / "AGENTS.md").unlink()
    (project / "AGENTS.md").symlink_to(tmp_path / "secret")
    assert await notes_of(project) is None
