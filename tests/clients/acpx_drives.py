"""acpx, a public headless client, drives `punie acp`: its own output, and the disk. `make clients` runs this."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e import scripts
from tests.e2e.raw_client import agent_command, clean_environment
from tests.e2e.scripts import RESULT, call, text

CLIENT = Path(__file__).resolve().parent / "node_modules" / "acpx" / "dist" / "cli.js"
IDLE_S = 1
"""How long acpx keeps the agent's process after a prompt of a kept session."""
ALL = "--approve-all"
NONE = "--deny-all"
READS = "--approve-reads"

Acpx = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "notes.txt").write_text("kept in notes\n", "utf-8")
    return folder


@pytest.fixture
def start(tmp_path: Path, project: Path) -> Iterator[Acpx]:
    """Start acpx on a script of turns; `start(turns, policy, *arguments)`."""
    node = shutil.which("node")
    if node is None or not CLIENT.exists():
        (pytest.fail if os.environ.get("CI") else pytest.skip)(
            "ACPX IS NOT TESTED: install Node.js, run `make clients`"
        )
    env = clean_environment(tmp_path / "home")
    running: list[subprocess.Popen[str]] = []

    def run(turns: list[list[scripts.Item]], policy: str, *arguments: str) -> subprocess.Popen[str]:
        agent = shlex.join([*agent_command("acp"), "--model", scripts.write(tmp_path / "script.json", *turns)])
        options = ["--cwd", str(project), "--ttl", str(IDLE_S), policy, "--agent", agent]
        # acpx leaves a process behind that keeps the session: a file, for a pipe would stay open as long as it does
        output = (tmp_path / f"output-{len(running)}").open("w+", encoding="utf-8")
        process = subprocess.Popen(
            [node, str(CLIENT), *options, *arguments],
            env=env, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip
        process.stdout = output
        running.append(process)
        return process

    yield run
    for process in running:
        if process.poll() is None:
            process.kill()
            process.wait()
        if process.stdout is not None:
            process.stdout.close()


def said(process: subprocess.Popen[str], code: int = 0) -> str:
    """All that acpx printed, once it has ended with that code."""
    ended = process.wait(timeout=60)
    printed = printed_so_far(process)
    assert ended == code, printed
    return printed


def printed_so_far(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    process.stdout.seek(0)
    return process.stdout.read()


def card(printed: str, title: str, status: str) -> str:
    """What acpx shows of that call from the given status on, up to the next event."""
    head = f"[tool] {title} ({status})"
    assert head in printed, printed
    return printed.split(head, 1)[1].split("\n\n[", 1)[0]


def test_a_prompt_is_answered_in_text(start: Acpx) -> None:
    printed = said(start([[text("Plain words.")]], ALL, "exec", "hello"))
    assert "Plain words." in printed
    assert "[done] end_turn" in printed
    assert "[error]" not in printed


def test_a_read_goes_through_the_client(start: Acpx) -> None:
    turn = [call("read_file", path="notes.txt"), text("read")]
    printed = said(start([turn], READS, "exec", "look"))
    assert "[client] fs/read_text_file" in printed
    assert "kept in notes" in card(printed, "Reading notes.txt", "completed")
    assert printed.count("kept in notes") == 1, "content and raw output say it once"


def test_a_denied_read_tells_who_denied_it(start: Acpx) -> None:
    turn = [call("read_file", path="notes.txt"), RESULT]
    printed = said(start([turn], NONE, "exec", "look"), code=5)
    told = "Permission denied for fs/read_text_file (--deny-all)"
    assert told in card(printed, "Reading notes.txt", "failed")
    assert printed.count(told) >= 2, "the model is told of it too"
    assert "Internal error" not in printed


WRITE = [call("write_file", path="made.txt", content="made\n"), text("after it")]


def test_an_approved_write_is_on_the_disk_through_the_client(start: Acpx, project: Path) -> None:
    printed = said(start([WRITE], ALL, "exec", "write"))
    assert "[client] session/request_permission" in printed
    assert "[client] fs/write_text_file" in printed
    assert "diff " in card(printed, "Writing made.txt", "completed")
    assert (project / "made.txt").read_text("utf-8") == "made\n"


@pytest.mark.parametrize("policy", [NONE, READS])
def test_a_denied_write_changes_nothing_and_the_turn_goes_on(start: Acpx, project: Path, policy: str) -> None:
    printed = said(start([WRITE], policy, "exec", "write"), code=5)  # acpx's own code for a denied permission
    assert "[client] session/request_permission" in printed
    assert "the user rejected it. Nothing was done." in card(printed, "Writing made.txt", "failed")
    assert "after it" in printed
    assert not (project / "made.txt").exists()


def test_a_command_that_fails_is_shown_as_failed_with_its_output(start: Acpx) -> None:
    turn = [call("run_command", command="echo printed; exit 3"), text("after it")]
    printed = said(start([turn], ALL, "exec", "run"))
    assert "[client] terminal/create" in printed
    assert "printed" in card(printed, "Running echo printed; exit 3", "failed").split("output:")[1]
    assert "Running echo printed; exit 3 (completed)" not in printed
    assert "after it" in printed


def test_a_kept_session_is_cancelled_listed_and_resumed_by_another_process(start: Acpx, project: Path) -> None:
    command = "echo printed > started.txt; echo printed; sleep 60"
    turns = [[text("first answer")], [call("run_command", command=command), text("never")], [text("third answer")]]
    session = said(start(turns, ALL, "sessions", "new")).splitlines()[-1]
    assert session.startswith("sess_")

    assert "first answer" in said(start(turns, ALL, "prompt", "hello there"))
    slow = start(turns, ALL, "prompt", "be slow")
    until(lambda: (project / "started.txt").exists() and f"{command} (pending)" in printed_so_far(slow), slow)
    assert "cancel requested" in said(start(turns, ALL, "cancel"))
    printed = said(slow)
    assert "[done] cancelled" in printed
    cancelled = card(printed, f"Running {command}", "failed").split("output:")[1]
    assert "printed" in cancelled
    assert "Cancelled before it was done." in printed
    assert "never" not in printed

    listed = said(start(turns, ALL, "sessions", "list"))
    assert [line.split("\t")[:2] for line in listed.splitlines() if session in line] == [[session, "hello there"]]
    until(lambda: "status: running" not in said(start(turns, ALL, "status")))

    printed = said(start(turns, ALL, "prompt", "go on"))
    assert "session/resume" in printed or "session/load" in printed
    assert "third answer" in printed
    history = said(start(turns, ALL, "sessions", "history"))
    assert all(words in history for words in ("hello there", "first answer", "be slow", "go on", "third answer"))
    assert session in said(start(turns, ALL, "sessions", "close"))


def until(condition: Callable[[], bool], process: subprocess.Popen[str] | None = None) -> None:
    end_s = time.monotonic() + 40
    while not condition():
        assert time.monotonic() < end_s, process and printed_so_far(process)
        time.sleep(0.2)
