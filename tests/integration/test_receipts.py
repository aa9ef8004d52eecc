"""Receipts of commits: made by a real session in a real repository, proven and refuted by `punie changes verify`."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import anyio
import pytest
from attrs import define, evolve, field, frozen

from punie.adapters.git.repository import DulwichRepository
from punie.application.tools.files.proving import prove
from punie.bootstrap.session_here import open_session_here
from punie.commands.changes.run import run_changes
from punie.domain.errors import ToldToModel
from punie.domain.permission.flow import PermissionOutcome, PermissionQuestion, Selected
from punie.domain.tools.tool import ToolOutcome
from punie.ports.permission import PermissionBroker

pytestmark = pytest.mark.anyio

HOSTILE = "-x\n\x1b[31m.txt"
ON: Mapping[str, Any] = {"receipts.commits": "true"}


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@define
class Yes(PermissionBroker):
    questions: list[PermissionQuestion] = field(factory=list[PermissionQuestion])

    async def ask(self, question: PermissionQuestion) -> PermissionOutcome:
        self.questions.append(question)
        return Selected(next(option.id for option in question.options if option.id.startswith("allow")))


@frozen
class Place:
    """A repository with one commit, and the state of Punie beside it."""

    top: Path
    home: Path

    def git(self, *words: str, data: bytes | None = None) -> str:
        command = ["git", "-C", str(self.top), "-c", "user.name=A", "-c", "user.email=a@example.org", *words]
        return subprocess.run(command, check=True, capture_output=True, timeout=30, input=data).stdout.decode()

    def note(self, commit: str = "HEAD") -> dict[str, Any]:
        return json.loads(self.git("notes", "--ref=punie", "show", commit))

    def renote(self, text: str, commit: str = "HEAD") -> None:
        self.git("notes", "--ref=punie", "add", "-f", "-F", "-", commit, data=text.encode())

    async def session(self, *calls: tuple[str, dict[str, Any]], on: bool = True) -> Yes:
        """Make these calls in a session, a person's edit where the name of the tool is empty."""
        broker, environ = Yes(), {**os.environ, "PUNIE_HOME": str(self.home)}
        async with open_session_here(str(self.top), broker=broker, environ=environ, flags=ON if on else {}) as here:
            for tool, arguments in calls:
                if not tool:
                    (self.top / arguments["path"]).write_text(arguments["content"])
                    continue
                result = await here.call(tool, arguments)
                assert result.outcome is ToolOutcome.SUCCEEDED, result.text
        return broker


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    made = Place((tmp_path / "project").resolve(), tmp_path / "home")
    monkeypatch.setenv("PUNIE_HOME", str(made.home))
    made.top.mkdir()
    made.git("init", "-q", "-b", "main")
    made.git("config", "user.name", "A")
    made.git("config", "user.email", "a@example.org")
    (made.top / "a.py").write_text("a = 1\n")
    (made.top / "b.py").write_text("b = 1\n")
    made.git("add", "-A")
    made.git("commit", "-qm", "first")
    return made


def write(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "write_file", {"path": path, "content": content}


COMMIT = ("git_add_commit", {"message": "Change\n\nReviewed-by: B <b@example.org>\nPunie-Session: forged"})


def person(path: str, content: str) -> tuple[str, dict[str, Any]]:
    return "", {"path": path, "content": content}


def verify(place: Place, capsys: pytest.CaptureFixture[str], *names: str, code: int = 0) -> dict[str, Any]:
    flags = {"paths": list(names), "patch": False, "hunks": None, "everything": False, "as_json": True}
    capsys.readouterr()
    found = run_changes(given="verify", turn=None, cwd=str(place.top), session=None, **flags)
    out = capsys.readouterr()
    assert found == code, out
    return json.loads(out.out) if out.out else {"error": out.err}


def standings(said: dict[str, Any]) -> dict[str, str]:
    return {row["path"]: row["standing"] for row in said["files"]}


def run_sync(place: Place, *calls: tuple[str, dict[str, Any]], on: bool = True) -> Yes:
    return anyio.run(lambda: place.session(*calls, on=on))


def test_a_commit_carries_receipts_that_are_proven(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    (place.top / ".git/hooks/post-commit").write_text("#!/bin/sh\ntouch ran\n")
    (place.top / ".git/hooks/post-commit").chmod(0o755)
    asked = run_sync(
        place,
        write("a.py", "a = 2\n"),
        write(HOSTILE, "made\n"),
        write("b.py", "b = 2\n"),
        person("b.py", "b = 3\n"),
        person("mine.py", "mine = 1\n"),
        ("run_command", {"command": "echo made > by_command.txt"}),
        COMMIT,
    )
    note, message = place.note(), place.git("log", "-1", "--format=%B").rstrip()
    assert message == (
        f"Change\n\nReviewed-by: B <b@example.org>\nPunie-Session: {note['session']}\nPunie-Model: direct"
    )
    assert asked.questions[-1].about.endswith(message)
    by = {name: one["change"] for name, one in note["files"].items()}
    assert by == {"a.py": "tool", HOSTILE: "tool", "b.py": "person", "mine.py": "person", "by_command.txt": "command"}
    said = verify(place, capsys)
    assert (said["session"], said["model"], said["said"]) == (note["session"], "direct", "")
    assert standings(said) == {
        name: "not by the session" if change == "person" else "proven" for name, change in by.items()
    }
    assert not (place.top / "ran").exists()
    flags: dict[str, Any] = {"paths": [], "patch": False, "hunks": None, "everything": False, "as_json": False}
    assert run_changes(given="verify", turn=None, cwd=str(place.top), session=None, **flags) == 0
    text = capsys.readouterr().out
    assert "  -x<U+000A><U+001B>[31m.txt: proven (tool write_file, decision " in text
    assert "  mine.py: not by the session\n" in text
    assert "\x1b" not in text


def test_commits_of_a_command_have_notes_where_the_session_changed_them(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    both = "git commit -qm one a.py && git add -A && git commit -qm two"
    run_sync(place, write("a.py", "a = 2\n"), write("c.py", "c = 1\n"), ("run_command", {"command": both}))

    for name, path in (("HEAD~1", "a.py"), ("HEAD", "c.py")):
        assert place.note(name)["files"][path]["change"] == "tool"
        assert standings(verify(place, capsys, place.git("rev-parse", name).strip())) == {path: "proven"}
    noted = place.git("notes", "--ref=punie", "list")

    run_sync(place, person("b.py", "b = 2\n"), ("run_command", {"command": "git commit -qam theirs"}))
    run_sync(
        place, ("run_command", {"command": "git checkout -q -b other HEAD~2 && git commit -qm away --allow-empty"})
    )
    assert place.git("notes", "--ref=punie", "list") == noted


def test_a_second_session_adds_its_note_and_what_is_forged_is_refuted(
    place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    run_sync(place, write("a.py", "a = 2\n"), COMMIT)
    first, head = place.note(), place.git("rev-parse", "HEAD").strip()
    run_sync(place, write("a.py", "a = 3\n"), write("b.py", "b = 2\n"), COMMIT)
    own = place.git("notes", "--ref=punie", "show", "HEAD")
    assert place.note(head) == first
    assert standings(verify(place, capsys, head[:10])) == {"a.py": "proven"}

    def forged(text: str, words: str) -> None:
        place.renote(text)
        said = verify(place, capsys, code=1)
        assert set(standings(said).values()) == {"refuted"}
        assert words in said["said"], said

    note = json.loads(own)
    other = note["files"]["b.py"]["decision"]
    forged(own.replace(note["files"]["a.py"]["decision"], other), "sealed no such note")
    forged(own.replace(other, first["files"]["a.py"]["decision"]), "sealed no such note")
    forged(json.dumps(first), "name not the same session")
    forged(own.replace('"direct"', '"better"'), "name not the same session")
    for broken in ("{", "[" * 100_000, "[]", own.replace('"version": 1', '"version": 2'), own.replace('"tool"', "[]")):
        forged(broken, "no receipt that this version")
    forged(json.dumps({**note, "pad": "x" * 1_000_000}), "larger than")
    place.renote(own.strip())
    assert set(standings(verify(place, capsys, code=1)).values()) == {"refuted"}  # git adds a line end
    place.git("commit", "-q", "--amend", "--no-edit", "--date=2026-01-01T00:00:00Z", "--reset-author")
    said = verify(place, capsys)
    assert set(standings(said).values()) == {"not by the session"}
    assert "amended, rebased" in said["said"]


def test_an_audit_that_was_shortened_or_is_elsewhere(
    place: Place, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run_sync(place, write("a.py", "a = 2\n"), COMMIT)
    assert standings(verify(place, capsys)) == {"a.py": "proven"}
    (database,) = place.home.rglob("*.db")
    with sqlite3.connect(database) as opened:
        opened.execute("DELETE FROM audit WHERE number = (SELECT max(number) FROM audit)")
    opened.close()
    said = verify(place, capsys, code=1)
    assert "cannot be trusted" in said["said"]
    monkeypatch.setenv("PUNIE_HOME", str(place.home.with_name("another")))
    said = verify(place, capsys)
    assert standings(said) == {"a.py": "unknown"}
    assert "not on this machine" in said["said"]


def test_without_the_setting_nothing_is_different(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    asked = run_sync(place, write("a.py", "a = 2\n"), COMMIT, on=False)
    assert place.git("log", "-1", "--format=%B").rstrip() == COMMIT[1]["message"]
    assert asked.questions[-1].about == ""
    assert "punie" not in place.git("for-each-ref")
    assert not any('"call"' in file.read_text() for file in place.home.rglob("changes.jsonl"))
    said = verify(place, capsys)
    assert standings(said) == {"a.py": "not by the session"}


async def test_strange_repositories(place: Place, tmp_path: Path) -> None:
    place.git("checkout", "-qb", "side")
    (place.top / "c.py").write_text("c\n")
    place.git("add", "-A")
    place.git("commit", "-qm", "side")
    place.git("checkout", "-q", "main")
    place.git("commit", "-q", "--allow-empty", "-m", "main")
    place.git("merge", "-q", "--no-ff", "--no-edit", "side")
    here = DulwichRepository(str(place.top), (str(place.top),))
    made = await here.commit_files("HEAD")
    assert (list(made.files), made.note) == (["c.py"], None)
    assert list((await here.commit_files(place.git("rev-parse", "HEAD~2").strip())).files) == [
        "a.py", "b.py",
    ]  # fmt: skip
    place.git("tag", "-am", "tag", "v1")
    short = place.git("rev-parse", "--short", "HEAD").strip()
    for name in (
        "@",
        "HEAD~1",
        "HEAD~",
        "HEAD^2",
        "v1",
        "v1^{}",
        "HEAD^0",
        "HEAD~1^",
        "side~1",
        f"{short}^^1",
        "v1~1^{commit}",
    ):
        assert (await here.commit_files(name)).id == place.git("rev-parse", f"{name}^{{commit}}").strip()
    unknown = ("HEAD~9", f"HEAD~{'9' * 12}", "HEAD^3", "^", "~1", "HEAD~x", "main..side", "HEAD:a.py")
    for name in ("nonsense", "", "main\x1b[31m", "../../HEAD", "HEAD^{tree}", *unknown):
        with pytest.raises(ToldToModel):
            await here.commit_files(name)
    shallow = tmp_path / "shallow"
    place.git("clone", "-q", "--depth=1", place.top.as_uri(), str(shallow))
    with pytest.raises(ToldToModel, match="shallow"):
        await DulwichRepository(str(shallow), (str(shallow),)).commit_files("HEAD")
    main = place.git("rev-parse", "main")
    place.git("symbolic-ref", "refs/notes/punie", "refs/heads/main")
    with pytest.raises(ToldToModel, match="leads to another"):
        await here.write_note(made.id, "{}")
    place.git("symbolic-ref", "--delete", "refs/notes/punie")
    place.git("update-ref", "refs/notes/punie", place.git("rev-parse", "HEAD:a.py").strip())
    with pytest.raises(ToldToModel, match="no reference of notes"):
        await here.write_note(made.id, "{}")
    place.git("update-ref", "-d", "refs/notes/punie")
    for name in ("HEAD:a.py", "HEAD:c.py"):
        place.git("notes", "--ref=punie", "add", "-m", "x", name)
    await here.write_note(made.id, "{}")
    assert place.git("notes", "--ref=punie", "show", "HEAD") == "{}"
    assert len(place.git("notes", "--ref=punie", "list").splitlines()) == 3
    assert place.git("rev-parse", "main") == main
    assert (await here.commit_files("HEAD")).note == b"{}"
    assert prove(evolve(made, note=None), (), None).session == ""
