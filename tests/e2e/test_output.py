"""Output never ends the work: streams that cannot encode, that are full or closed, or whose reader has left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e import scripts
from tests.e2e.at_a_terminal import run_at_a_terminal
from tests.e2e.raw_client import agent_command, clean_environment
from tests.e2e.scripts import call, text

LIMIT_S = 60.0
WORDS = "naïve ✓ \U0001f600"

Shell = Callable[..., "subprocess.CompletedProcess[bytes]"]

WRITES = (text(f"{WORDS}\n"), call("write_file", path="a.txt", content=WORDS), text(f"done {WORDS}\n"))

COMMANDS = {
    "ask": ["ask", "--mode", "accept-edits", "hello"],
    "ask --json": ["ask", "--json", "--mode", "accept-edits", "hello"],
    "demo": ["demo"],
    "doctor": ["doctor"],
    "config": ["config", "show"],
    "check": ["permissions", "check", "--json"],
    "audit": ["permissions", "audit"],
    "sessions": ["sessions", "list", "--json"],
    "setup": ["setup", "zed", "--dry-run"],
    "tools": ["tools", "list"],
    "--help": ["--help"],
}

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the shell and /dev/full are POSIX's")


@pytest.fixture
def shell(tmp_path: Path, project: Path) -> Shell:
    """Run `punie WORDS` in bash, with what is written behind it, such as `| head -1`."""

    def run(words: list[str], behind: str, **env: str) -> subprocess.CompletedProcess[bytes]:
        model = scripts.write(tmp_path / "play.json", list(WRITES))
        line = f'set -o pipefail; "$@" {behind}'
        return subprocess.run(
            ["bash", "-c", line, "bash", *agent_command(*words)], cwd=project, capture_output=True, timeout=LIMIT_S,
            check=False, stdin=subprocess.DEVNULL,
            env=clean_environment(tmp_path / "home", PATH=os.environ["PATH"], PUNIE_MODEL=model, **env),
        )  # fmt: skip

    return run


@pytest.mark.parametrize("encoding", ["cp1252", "ascii:strict", "utf-8:strict"])
def test_a_turn_goes_on_where_its_words_cannot_be_encoded(shell: Shell, project: Path, encoding: str) -> None:
    done = shell(COMMANDS["ask"], "", PYTHONIOENCODING=encoding)
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
    assert (project / "a.txt").read_text("utf-8") == WORDS
    shown = done.stdout.decode(encoding.partition(":")[0])
    assert shown.count("na") == 2
    assert all(word in shown for word in (["✓", "\U0001f600"] if "utf" in encoding else [r"\u2713", r"\ud83d\ude00"]))


def test_json_stays_json_in_every_encoding(shell: Shell) -> None:
    encoding = "cp1252"
    asked = shell(COMMANDS["ask --json"], "", PYTHONIOENCODING=encoding)
    lines = [json.loads(line) for line in asked.stdout.splitlines()]
    assert (asked.returncode, lines[-1]["exitCode"]) == (0, 0)
    assert WORDS in json.dumps(lines, ensure_ascii=False)
    session = lines[0]["sessionId"]
    for words in (["sessions", "show", session, "--json"], ["sessions", "export", session], ["usage", "--json"]):
        done = shell(words, "", PYTHONIOENCODING=encoding)
        assert done.returncode == 0, done.stderr
        values = [json.loads(line) for line in done.stdout.decode(encoding).splitlines()]
        assert words[0] == "usage" or WORDS in json.dumps(values, ensure_ascii=False)


@pytest.mark.parametrize("name", COMMANDS)
def test_an_output_that_is_full_is_an_exit_code_and_a_sentence(shell: Shell, project: Path, name: str) -> None:
    feed = '<<< \'{"tool": "read_file", "arguments": {}}\' ' if name == "check" else ""
    done = shell(COMMANDS[name], f"{feed}>/dev/full")
    assert done.returncode == 1
    assert b"Traceback" not in done.stderr
    assert b"the output could not be written: No space left on device" in done.stderr
    assert not name.startswith("ask") or (project / "a.txt").exists()


@pytest.mark.parametrize(
    ("name", "behind"),
    [
        ("ask", "| true"), ("ask", ">&- 2>&-"), ("ask", "2>/dev/full"), ("ask", "<&- >&- 2>&-"),
        ("ask --json", "| head -c 1"), ("demo", "| head -c 1"), ("demo", ">&-"), ("tools", ">&-"),
    ],
)  # fmt: skip
def test_the_work_goes_on_without_a_reader(shell: Shell, project: Path, name: str, behind: str) -> None:
    done = shell(COMMANDS[name], behind)
    assert done.returncode == (0 if behind == "2>/dev/full" else 1)
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr
    assert not name.startswith("ask") or (project / "a.txt").read_text("utf-8") == WORDS


@pytest.mark.parametrize(("typed", "code"), [("y", 0), ("Allow once", 0), ("n", 3), ("\x04", 3)])
def test_at_a_terminal_a_question_is_asked_again_until_its_answer_is_understood(
    tmp_path: Path, project: Path, typed: str, code: int
) -> None:
    model = scripts.write(tmp_path / "play.json", list(WRITES))
    again = "That was not understood."
    left, screen = run_at_a_terminal(
        agent_command("ask", "--mode", "ask", "--model", model, "go on"),
        [("(Enter rejects)", "sure"), (again, "perhaps"), (again, typed)],
        env=clean_environment(tmp_path / "home"), cwd=project,
    )  # fmt: skip
    assert (left, (project / "a.txt").exists()) == (code, code == 0), screen
    assert "Traceback" not in screen
    assert ("The input has ended" in screen) == (typed == "\x04")
