"""`punie ask` over real pipes and at a terminal: what goes in, what is told of each call, and how it ends."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import scripts
from tests.e2e.at_a_terminal import Terminal
from tests.e2e.raw_client import agent_command, clean_environment, run_cli
from tests.e2e.scripts import RESULT, call, sleep, text, usage

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pipes and terminals are POSIX's")

LIMIT_S = 60.0

Ask = Callable[..., "subprocess.CompletedProcess[str]"]

WORK = [
    text("I look."),
    call("read_file", path="notes.txt"),
    call("read_file", path="nope.txt"),
    call("run_command", command="echo twelve; exit 12"),
    call("run_command", command="rm notes.txt && git push origin main"),
    call("run_command", command="cat <<E\na\nb\nE"),
    call("write_file", path="src/new.py", content="a\nb\n"),
    usage(1234, 56),
    text("Done."),
]


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return clean_environment(tmp_path / "home", PATH=os.environ["PATH"])


@pytest.fixture
def ask(tmp_path: Path, project: Path, environ: dict[str, str]) -> Ask:
    """``ask([items], "--json", "prompt", stdin="...")`` runs `punie ask` with a script."""

    def run(items: list[scripts.Item], *args: str, **options: Any) -> subprocess.CompletedProcess[str]:
        model = scripts.write(tmp_path / "ask.json", items)
        return run_cli("ask", "--model", model, *args, env=environ, cwd=project, **options)

    return run


def prompt_of(done: subprocess.CompletedProcess[str], environ: dict[str, str], project: Path) -> str:
    """The text of the prompt, as the session of that `--json` run keeps it."""
    session = json.loads(done.stdout.splitlines()[0])["sessionId"]
    shown = run_cli("sessions", "show", session, "--json", env=environ, cwd=project).stdout
    (accepted,) = [entry["event"] for entry in json.loads(shown)["entries"] if entry["kind"] == "prompt_accepted"]
    return json.dumps(accepted["prompt"])


def test_each_call_says_how_it_ended_and_the_named_rules_really_allow_what_was_denied(ask: Ask, project: Path) -> None:
    (project / ".mcp.json").write_text("{", "utf-8")
    done = ask(WORK, "go", stdin="")
    assert done.returncode == 3
    assert done.stdout == "I look.\nDone.\n"
    told = done.stderr.splitlines()
    for line in (
        "- done: Reading notes.txt",
        "- exit 12: Running echo twelve; exit 12: twelve",
        "- denied: Writing src/new.py: write_file changes a file; allow with --allow 'write_file@src/new.py'",
        "- done: Running cat <<E (+3 lines)",
        "1,234 tokens in, 56 out",
        "A call was denied, and none succeeded after it.",
    ):
        assert line in told
    assert any(line.startswith("- failed: Reading nope.txt: ") and "does not exist" in line for line in told)
    assert any(line.startswith("! ") and ".mcp.json" in line for line in told), "a warning is shown"
    assert not any("\x1b" in line or "waiting" in line for line in told), "no progress in a pipe"
    rules = ["run_command:rm", "run_command:git push", "write_file@src/new.py"]
    flags = " ".join(f"--allow '{rule}'" for rule in rules)
    assert f"  to allow it in the next run: {flags}" in told
    assert (project / "notes.txt").exists()
    again = ask(WORK, "--json", *[word for rule in rules for word in ("--allow", rule)], "go", stdin="")
    lines = [json.loads(line) for line in again.stdout.splitlines()]
    end = lines[-1]
    assert (again.returncode, end["exitCode"], end["denied"]) == (0, 0, [])
    assert [(Path(row["path"]).name, row["change"], row["added"]) for row in end["changes"]] == [
        ("notes.txt", "deleted", 0), ("new.py", "created", 2),
    ]  # fmt: skip
    assert not (project / "notes.txt").exists()
    assert any(line.get("update", {}).get("sessionUpdate") == "notice" for line in lines)


def test_a_prompt_is_piped_in_alone_or_behind_words_which_may_mention_files(
    ask: Ask, environ: dict[str, str], project: Path
) -> None:
    piped = ask([text("ok")], "--json", "-", stdin="@notes.txt in the pipe\n")
    kept = prompt_of(piped, environ, project)
    assert "@notes.txt in the pipe" in kept
    assert "three" not in kept, "a piped text mentions nothing"
    both = ask([text("ok")], "--json", "Explain @notes.txt and @nots.txt", stdin="from @src/app.py\n")
    kept = prompt_of(both, environ, project)
    assert "Explain @notes.txt and @nots.txt\\n\\nfrom @src/app.py" in kept
    assert ("three" in kept, "def add" in kept) == (True, False)
    notices = [
        one["update"]["title"] for line in both.stdout.splitlines() if '"notice"' in line if (one := json.loads(line))
    ]
    assert notices == [
        "@notes.txt: attached, 3 lines", "@nots.txt: there is no such file; did you mean @notes.txt?",
    ]  # fmt: skip


def test_a_session_goes_on_and_none_is_said(ask: Ask, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    none = ask([text("a")], "--continue", "--json", "go", "--cwd", str(tmp_path / "other"))
    assert (none.returncode, json.loads(none.stdout)["code"]) == (2, "usage")
    assert "no session of" in json.loads(none.stdout)["message"]
    first = json.loads(ask([text("a")], "--json", "go").stdout.splitlines()[0])["sessionId"]
    for words in (["--continue"], ["--session", "last"], ["--session", first.removeprefix("sess_")[:8]]):
        done = ask([text("a")], *words, "--json", "go")
        assert json.loads(done.stdout.splitlines()[0]) == {"type": "session", "sessionId": first}


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("/run exit 3", 1), ("/run true", 0), ("/read nope", 1), ("/tools", 0), ("what is this?", 1), ("/nonsense", 2),
        ("/read", 1),
    ],
)  # fmt: skip
def test_without_a_model_a_command_that_failed_or_is_none_is_an_exit_code(
    environ: dict[str, str], project: Path, words: str, code: int
) -> None:
    done = run_cli("ask", "--mode", "auto", words, env=environ, cwd=project)
    assert done.returncode == code, done.stdout + done.stderr


def test_an_unknown_slash_word_is_wrong_usage_with_a_model_too(ask: Ask) -> None:
    done = ask([text("a model's words")], "/hlep")
    assert done.returncode == 2
    assert "There is no command `/hlep`. Did you mean `/help`?" in done.stdout
    assert "a model's words" not in done.stdout


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_turn_tells_what_it_did(
    tmp_path: Path, project: Path, environ: dict[str, str], number: signal.Signals, code: int
) -> None:
    model = scripts.write(
        tmp_path / "slow.json", [call("write_file", path="a.txt", content="x\n"), text("now"), sleep(50)]
    )
    with subprocess.Popen(
        agent_command("ask", "--mode", "accept-edits", "--model", model, "go"), cwd=project, env=environ, text=True,
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    ) as process:  # fmt: skip
        assert process.stdout is not None
        assert process.stdout.read(3) == "now"
        process.send_signal(number)
        _, told = process.communicate(timeout=LIMIT_S)
    assert process.returncode == code
    assert told.endswith("The turn was stopped.\n  A a.txt  +1 -0\n1 file changed, +1 -0; `punie undo` takes it back\n")


def test_at_a_terminal_a_wait_is_shown_and_goes_away_and_a_dash_is_typed(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    waits = "until test -e seen; do sleep 0.1; done"
    model = scripts.write(tmp_path / "slow.json", [text("I wait"), call("run_command", command=waits), RESULT])
    with Terminal(agent_command("ask", "--model", model, "--mode", "auto", "-"), environ, project) as terminal:
        terminal.wait_for("Ctrl-D on an empty line ends it")
        terminal.enter("go")
        terminal.press("ctrl-d")
        terminal.wait_for(f"Running {waits} ")
        assert re.search(rf"Running {re.escape(waits)} \d+ s$", terminal.screen.text, re.MULTILINE)
        (project / "seen").touch()
        terminal.wait_for(f"- done: Running {waits}")
        assert terminal.end() == 0
        assert f"Running {waits} " not in terminal.screen.everything
        assert "I wait" in terminal.screen.lines


def test_with_a_text_piped_in_the_person_is_asked_at_the_terminal(
    tmp_path: Path, project: Path, environ: dict[str, str]
) -> None:
    turn = [
        call("write_file", path="src/asked.txt", content="x\n"),
        call("ask_user", question="Which one?", choices=["left", "right"]),
        RESULT,
    ]
    asks = agent_command("ask", "--model", scripts.write(tmp_path / "asks.json", turn), "go on")
    with Terminal(["sh", "-c", 'echo piped | "$@"', "sh", *asks], environ, project) as terminal:
        terminal.wait_for("(Enter rejects)")
        assert "+++ src/asked.txt" in terminal.screen.text
        terminal.enter("y")
        terminal.wait_for("2. right")
        terminal.enter("2")
        terminal.wait_for("Remark")
        terminal.press("enter")
        assert terminal.end() == 0
        assert "The user answers: right" in terminal.screen.everything
    assert (project / "src/asked.txt").read_text() == "x\n"
