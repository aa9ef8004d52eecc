"""Toad, a public client for the terminal, drives `punie acp` on a screen of tmux. `make clients` runs this."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e import scripts
from tests.e2e.raw_client import agent_command, clean_environment
from tests.e2e.scripts import call, text

PYTHON = Path(__file__).resolve().parent / ".venv" / "bin" / "python"
START_S = 40

Tmux = Callable[..., str]


@pytest.fixture
def tmux(tmp_path: Path) -> Iterator[Tmux]:
    """tmux with a server of its own; skips the test where it or Toad is missing, also in CI."""
    program = shutil.which("tmux")
    if program is None or not PYTHON.exists():
        pytest.skip("TOAD IS NOT TESTED: it needs tmux and Python 3.14 (TOAD_PYTHON=/path/to/python3.14 make clients)")
    env = clean_environment(
        tmp_path / "home", COLORTERM="truecolor", SHELL="/bin/sh", LANG="C.UTF-8", TERM="xterm-256color"
    )

    def run(*arguments: str) -> str:
        command = [program, "-S", str(tmp_path / "tmux"), "-f", "/dev/null", *arguments]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True, timeout=20).stdout

    yield run
    run("kill-server")


def test_a_conversation_on_a_screen(tmux: Tmux, tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    (project / "notes.txt").write_text("kept in notes\n", "utf-8")
    turn = [
        text("I look first. "),
        call("read_file", path="notes.txt"),
        call("write_file", path="made.txt", content="made\n"),
        call("run_command", command="echo printed; exit 3"),
        text("All of it is done."),
    ]
    agent = shlex.join([*agent_command("acp"), "--model", scripts.write(tmp_path / "script.json", turn)])
    toad = shlex.join([str(PYTHON), "-m", "toad", "acp", agent, str(project)])
    tmux("new-session", "-d", "-x", "140", "-y", "50", toad)

    def shows(words: str) -> bool:
        return words in tmux("capture-pane", "-p")

    until(lambda: shows(" Ask\n"), tmux)  # the mode: the session is open
    tmux("send-keys", "-l", "please begin")
    until(lambda: shows("please begin"), tmux)
    tmux("send-keys", "Enter")
    until(lambda: shows("made.txt") and shows("Allow once"), tmux)
    assert not (project / "made.txt").exists()
    tmux("send-keys", "a")
    until(lambda: shows("All of it is done."), tmux)
    assert (project / "made.txt").read_text("utf-8") == "made\n"
    assert shows("Reading notes.txt ✔")
    assert shows("Writing made.txt ✔")
    assert any("exit 3" in line and "failed" in line for line in tmux("capture-pane", "-p").splitlines())
    assert shows(" printed")
    screen = tmux("capture-pane", "-p")
    assert screen.count("printed") == 2, "in the title and in the output"
    assert screen.count("launch.py") == 1, "one terminal, and none of a trial"


def until(condition: Callable[[], bool], tmux: Tmux) -> None:
    end_s = time.monotonic() + START_S
    while not condition():
        assert time.monotonic() < end_s, tmux("capture-pane", "-p")
        time.sleep(0.3)
