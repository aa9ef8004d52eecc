"""A change of several files on this machine: all of it or none, whatever fails and whenever the process is killed."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from punie.adapters.local.files.path_guard import LocalPathGuard
from punie.adapters.local.files.private_folder import PrivateFolder, remove_abandoned
from punie.adapters.local.files.workspace import LocalWorkspace
from punie.adapters.local.files.writing import Entry, named_draft, unnoted, write_files
from punie.domain.errors import ToolFailedError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="drafts are renamed as POSIX does it")

OLD = {"a.txt": "a", "sub/b.txt": "b", "gone.txt": "c"}
NEW = {"a.txt": "A", "sub/b.txt": "B", "new/d.txt": "D"}
CHANGE: dict[str, bytes | None] = {"a.txt": b"A", "new/d.txt": b"D", "gone.txt": None, "sub/b.txt": b"B"}
STEPS = {"open", "os.rename", "os.remove", "os.mkdir", "os.link"}


def project_of(folder: Path) -> Path:
    for name, text in OLD.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def texts(project: Path) -> dict[str, str]:
    return {str(path.relative_to(project)): path.read_text() for path in project.rglob("*") if path.is_file()}


def killed_at(step: int, work: Callable[[], None]) -> bool:
    """Do the work in a process that is killed at that step; whether it was killed before the end."""
    child = os.fork()
    if child == 0:
        left = [step]

        def count(event: str, _arguments: object) -> None:
            left[0] -= event in STEPS
            if left[0] < 0 and event in STEPS:  # the kill is an event as well
                os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(count)
        try:
            work()
        finally:
            os._exit(0)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def test_killed_at_any_step_all_files_are_changed_or_none_once_the_next_session_opened(tmp_path: Path) -> None:
    seen: list[bool] = []
    for step in range(200):
        project, temporary = project_of(tmp_path / f"project-{step}"), tmp_path / f"tmp-{step}"
        temporary.mkdir()
        folder = PrivateFolder(str(temporary / f"punie-{step:032x}"))

        def work(project: Path = project, folder: PrivateFolder = folder) -> None:
            files = {str(project / name): data for name, data in CHANGE.items()}
            write_files(files, folder.draft, folder.journal)

        if not killed_at(step, work):
            break
        remove_abandoned(str(temporary))
        assert texts(project) in (OLD, NEW), step
        assert not list(project.rglob("*.tmp")), step
        seen.append(texts(project) == NEW)
    else:
        pytest.fail("the work never came to its end")
    assert seen == sorted(seen), "once it is changed, it stays so"
    assert {True, False} == set(seen)


def begun_and_killed(tmp_path: Path) -> tuple[Path, Path]:
    """The project and the folder of temporary files after a change that was killed before its first file."""
    project, temporary = project_of(tmp_path / "project"), tmp_path / "tmp"
    temporary.mkdir()
    folder = PrivateFolder(str(temporary / f"punie-{0:032x}"))

    def work() -> None:
        @contextmanager
        def journal(entries: Sequence[Entry]) -> Generator[None]:
            with folder.journal(entries):
                os.kill(os.getpid(), signal.SIGKILL)
                yield

        write_files({str(project / name): data for name, data in CHANGE.items()}, folder.draft, journal)

    assert killed_at(10_000, work)
    assert texts(project) != NEW
    return project, temporary


def test_what_was_begun_is_completed_also_where_there_is_no_time_or_place_for_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project, temporary = begun_and_killed(tmp_path)
    (temporary / f"punie-{0:032x}" / "of a program that still runs").mkdir()
    monkeypatch.setattr("punie.adapters.local.files.private_folder.SWEEP_LIMIT_S", -1.0)
    remove_abandoned(str(temporary))
    assert {name: text for name, text in texts(project).items() if not name.endswith(".tmp")} == NEW


def test_a_file_that_somebody_changed_after_the_kill_stays_theirs(tmp_path: Path) -> None:
    project, temporary = begun_and_killed(tmp_path)
    (project / "a.txt").write_text("theirs")
    remove_abandoned(str(temporary))
    assert texts(project) == {**NEW, "a.txt": "theirs"}


@pytest.mark.parametrize("failing", range(4))
def test_where_one_file_does_not_take_its_place_those_before_are_put_back(
    failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = project_of(tmp_path)
    places, left = {"rename": os.rename, "unlink": os.unlink}, [failing]

    def breaks(name: str) -> Callable[..., None]:
        def step(*arguments: object, **more: object) -> None:
            left[0] -= 1
            if left[0] == -1:
                raise PermissionError(13, "denied")
            places[name](*arguments, **more)  # type: ignore[operator]

        return step

    for name in places:
        monkeypatch.setattr(os, name, breaks(name))
    with pytest.raises(ToolFailedError, match="denies access"):
        write_files({str(project / name): data for name, data in CHANGE.items()}, named_draft, unnoted)
    monkeypatch.undo()
    assert texts(project) == OLD


@pytest.mark.anyio
async def test_nothing_is_changed_where_a_file_is_outside_or_read_only_or_missing(tmp_path: Path) -> None:
    project = project_of(tmp_path / "project")
    workspace = LocalWorkspace(LocalPathGuard((str(project),), str(project)))
    (project / "sub/b.txt").chmod(0o444)
    for name in ("../x.txt", "sub/b.txt", "nothing.txt"):
        with pytest.raises(Exception, match=r"outside|read-only|does not exist"):
            await workspace.change({str(project / "a.txt"): "A", str(project / name): None})
    assert texts(project) == OLD
