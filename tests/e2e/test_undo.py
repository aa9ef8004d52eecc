"""`punie undo` over real processes: files of a session taken back to before a turn, and what stays as it is."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.scripts import call

pytestmark = pytest.mark.anyio


def undo(home: Path, project: Path, *words: str, code: int = 0) -> Any:
    command = [sys.executable, "-m", "punie", "undo", "--json", "--yes", "--cwd", str(project), *words]
    environ = {**os.environ, "PUNIE_HOME": str(home)}
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=60, env=environ)
    assert done.returncode == code, done.stderr
    return json.loads(done.stdout) if done.stdout else done.stderr


def tree(top: Path) -> dict[str, object]:
    """Every file, link and folder below it, but for git's own."""
    found: dict[str, object] = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        if path.is_symlink():
            found[name] = str(path.readlink())
        elif not name.startswith(".git/"):
            found[name] = path.is_dir() or (path.stat().st_mode, path.read_bytes())
    return found


FIX = """\
import os, shutil
os.makedirs('made/deep')
open('made/deep/x', 'wb').write(b'\\0\\xff')
os.rename('old.txt', 'new\\n\\x1b[31m.txt')
os.remove('link')
os.symlink('nowhere', 'made/link')
os.chmod('run.sh', 0o644)
open('empty', 'w')
"""


@pytest.mark.skipif(sys.platform != "linux", reason="names and modes as Linux has them")
async def test_files_go_back_to_before_a_turn_and_what_a_person_changed_stays(
    spawn: Spawn, project: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    (project / "fix.py").write_text(FIX)
    (project / "old.txt").write_bytes(b"\xff\r\nold")
    (project / "run.sh").write_text("echo\n")
    (project / "run.sh").chmod(0o755)
    (project / "link").symlink_to("run.sh")
    (project / "both.txt").write_text("one\ntwo\n")
    before = tree(project)
    turns = [
        [call("write_file", path="src/new/a.py", content="a = 1\n")],
        [call("run_command", command="python3 fix.py"), call("write_file", path="both.txt", content="1\ntwo\n")],
    ]
    async with spawn(*turns, args=("--mode", "auto"), caps={}, env={"PUNIE_HOME": str(home)}) as ide:
        ide.person.always("allow_once")
        session = await ide.open(project)
        await ide.prompt(session)
        between = tree(project)
        await ide.prompt(session)
        after = tree(project)
        assert "is open" in undo(home, project, code=1)
        await ide.request("session/close", {"sessionId": session})
    assert after != between
    (project / "both.txt").write_text("1\ntwo\nperson\n")
    kept = undo(home, project, code=1)
    assert [one["path"] for one in kept["kept"]] == [str(project / "both.txt")]
    assert (kept["turn"], (project / "both.txt").read_text()) == (2, "1\ntwo\nperson\n")
    (project / "both.txt").write_text("one\ntwo\n")
    assert tree(project) == between
    assert "no turn 3" in undo(home, project, "--turn", "3", code=2)
    undo(home, project, "--turn", "1")
    assert tree(project) == before
