"""A renaming in a project of 30 files by one call: its diff on the question, and all or nothing under `kill -9`."""

from __future__ import annotations

import json
import os
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.jetbrains_ide import NAME, IdeServer
from tests.e2e.raw_client import RawClient
from tests.e2e.scripts import RESULT, TOOLS, Item, call

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(900)]

KILLS = int(os.environ.get("PUNIE_TEST_KILLS", "1"))
FILES = 30
FIND = [call("search_tools", query="nothing of that kind")]
SLOW_S = 30.0
FILLING = "# a line that is long enough to take a while\n" * (2_000 if KILLS > 1 else 200)
IDES = f"{NAME}__rename_refactoring"
BACK = call("restore_file", path="part_7.py")


@pytest.fixture
def many(project: Path) -> Path:
    """30 files that use one function, in a project that has `ty`, of which the copy beside Punie is preferred."""
    shutil.rmtree(project / "src")
    (project / "notes.txt").unlink()
    own = project / ".venv" / "bin" / "ty"
    own.parent.mkdir(parents=True)
    own.write_text("#!/bin/sh\nexit 1\n")
    own.chmod(0o755)
    (project / "part_0.py").write_text(f"def total():\n    return 1\n{FILLING}")
    for number in range(1, FILES):
        (project / f"part_{number}.py").write_text(f"from part_0 import total\n\nprint(total())\n{FILLING}")
    return project


def names(project: Path) -> set[str]:
    """The names that the function has in the files: one of them, unless something was torn."""
    texts = [path.read_text() for path in project.glob("part_*.py")]
    assert len(texts) == FILES
    assert all(text.endswith(FILLING) for text in texts), "whole files"
    found = {name for text in texts for name in ("total", "amount") if name in text}
    assert all(("total" in text) != ("amount" in text) for text in texts)
    return found


def of_ide(new: str, old: str) -> Item:
    return call(IDES, pathInProject="part_0.py", symbolName=old, newName=new)


def of_punie(new: str, old: str) -> Item:
    return call("code", do="rename", path="part_0.py", symbol=old, to=new)


def diffs(question: dict[str, Any]) -> dict[str, str]:
    shown = (item for item in question["toolCall"]["content"] if item["type"] == "diff")
    return {Path(item["path"]).name: item["newText"] for item in shown}


async def test_one_renaming_is_offered_and_its_question_and_card_show_every_file(
    spawn: Spawn, many: Path, tmp_path: Path
) -> None:
    server = IdeServer(many, tmp_path / "notes")
    server.start()
    try:
        async with spawn(
            FIND, [TOOLS], [of_ide("amount", "total"), RESULT], [of_ide("x", "nothing")], [BACK], caps={}
        ) as ide:
            ide.person.always("allow_once")
            await ide.initialize()
            session = await ide.new_session(many, mcpServers=[server.entry("nothing")])
            await ide.prompt(session, timeout_s=SLOW_S)
            offered = {tool["name"]: tool for tool in json.loads((await ide.prompt(session)).text)}
            assert IDES in offered
            assert "rename" not in json.dumps(offered["code"])
            listed = (await ide.prompt(session, "/tools")).text
            assert f"`code-rename`: {IDES} does the same and knows text that is not saved yet" in listed
            turn = await ide.prompt(session, timeout_s=SLOW_S)
            (question,) = ide.person.questions
            shown = diffs(question)
            assert len(shown) == FILES
            assert all("amount" in text and "total" not in text for text in shown.values())
            assert "A language server foresees these changes." in json.dumps(question)
            assert turn.card.shown["title"] == "Renaming total to amount wherever the project uses it"
            done = [item for item in turn.card.updates[-1]["content"] if item["type"] == "diff"]
            assert len(done) == FILES, "what it really changed"
            assert "with 59 usages" in turn.text
            await ide.prompt(session, timeout_s=SLOW_S)
            assert "The IDE alone knows which files this changes" in json.dumps(ide.person.questions[-1])
            assert (await ide.prompt(session)).card.status == "completed", "the session's history knows the files"
            assert "total" in (many / "part_7.py").read_text()
            (many / "part_7.py").write_text((many / "part_8.py").read_text())
    finally:
        server.stop()
    assert names(many) == {"amount"}


def killing(process: int, due: Callable[[], bool]) -> None:
    """Kill the process at the first moment at which that is true; blocks."""
    until = time.monotonic() + SLOW_S
    while not due() and time.monotonic() < until:
        pass
    os.kill(process, signal.SIGKILL)


async def killed(ide: RawClient, session: str, due: Callable[[], bool]) -> None:
    await ide.start_prompt(session)
    ide.stop_reading()  # the last line may be torn
    ide.reading.set()
    await anyio.to_thread.run_sync(killing, ide.process.pid, due)
    ide.ended_early = True
    await ide.process.wait()


def changed(project: Path, was: float) -> int:
    return sum(path.stat().st_mtime > was for path in project.glob("part_*.py"))


async def test_killed_in_the_middle_of_a_renaming_of_punie_s_every_file_has_the_new_name_or_none(
    spawn: Spawn, many: Path, tmp_path: Path
) -> None:
    now, torn, env = "total", 0, {"TMPDIR": str(tmp_path)}  # others' sessions would complete it as well, but later
    for kill in range(KILLS):
        new = "amount" if now == "total" else "total"
        was = max(path.stat().st_mtime for path in many.glob("part_*.py"))
        async with spawn([of_punie(new, now)], caps={}, env=env, args=("--mode", "accept-edits"), exits=None) as ide:
            session = await ide.open(many)
            wanted = 1 + (kill + 1) * (FILES - 1) // (KILLS + 1)
            await killed(ide, session, lambda was=was, wanted=wanted: changed(many, was) >= wanted)
        torn += len(names_or_none(many)) > 1
        async with spawn(model="direct", caps={}, env=env) as ide:
            await ide.open(many)
        (now,) = names(many)
    assert torn > KILLS // 4 or KILLS < 10, f"only {torn} of {KILLS} kills came in the middle"
    print(f"{torn} of {KILLS} kills left a part")  # noqa: T201 - for who asks with -s


async def test_a_renaming_by_the_ide_is_whole_or_not_begun_whenever_punie_is_killed(
    spawn: Spawn, many: Path, tmp_path: Path
) -> None:
    server = IdeServer(many, tmp_path / "notes")
    server.start()
    now, renamed = "total", 0
    try:
        for kill in range(KILLS):
            new = "amount" if now == "total" else "total"
            was = max(path.stat().st_mtime for path in many.glob("part_*.py"))
            before = server.count("tools/call")
            async with spawn(FIND, [of_ide(new, now)], caps={}, args=("--mode", "auto"), exits=None) as ide:
                await ide.initialize()
                session = await ide.new_session(many, mcpServers=[server.entry("nothing")])
                await ide.prompt(session, timeout_s=SLOW_S)

                def due(
                    was: float = was, wanted: int = (kill + 1) * FILES // (KILLS + 1), before: int = before
                ) -> bool:
                    return server.count("tools/call") > before and changed(many, was) >= wanted

                await killed(ide, session, due)
            with anyio.fail_after(SLOW_S):
                while len(found := names_or_none(many)) != 1:  # noqa: ASYNC110 - the IDE goes on: it is another process
                    await anyio.sleep(0.02)
            renamed += found == {new}
            (now,) = found
    finally:
        server.stop()
    assert renamed, "the call had reached the IDE"


def names_or_none(project: Path) -> set[str]:
    texts = [path.read_text() for path in project.glob("part_*.py")]
    return {name for text in texts for name in ("total", "amount") if name in text}
