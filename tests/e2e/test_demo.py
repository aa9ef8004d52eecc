"""`punie demo`, the command that a newcomer runs first: a real process, its screen, its exit code, the disk."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.promptness import BOUND_S
from tests.e2e.raw_client import agent_command, clean_environment, run_cli
from tools import picture

PROMPTS = 2


def demo(home: Path, *args: str, stdin: str = "", **env: str) -> tuple[int, str, str]:
    done = run_cli("demo", *args, env=clean_environment(home, **env), cwd=home, stdin=stdin, timeout_s=50)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "mine"
    root.mkdir()
    (root / "app.py").write_text("def main() -> None:\n    pass\n")
    return root


@pytest.fixture
def home(tmp_path: Path) -> Path:
    made = tmp_path / "home"
    made.mkdir()
    return made


def shown_in_readme() -> Iterator[str]:
    """The words of README's picture, which was recorded from this demo; paths and the ends of long lines left out."""
    for row in picture.kept():
        yield " ".join(row.get("text", "").split())
        yield from (" ".join(line.split()) for line in row.get("result", ())[: picture.SHOWN_LINES])
        if asked := row.get("asked"):
            yield asked["reason"]
            yield from (f"{sign} {text.strip()}" for sign, _, text in asked["lines"] if sign in {"+", "-"})
            yield from (f"[{option}]" for option in asked["options"] if "~" not in option)


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_it_ends_with_discovered_tools_a_question_and_a_changed_file(project: Path, home: Path) -> None:
    before = contents(project)
    code, screen, errors = demo(home, "--project", str(project))
    assert (code, errors) == (0, "")
    conversation, _, verdict = screen.partition("What happened")
    assert conversation.count("\nYou:   ") == PROMPTS
    assert "It has 6: find_problems" in conversation.replace("\n", " ")
    assert "Punie asks: Editing demo_shop/cart.py?" in conversation
    assert "-    if quantity is 0:\n    +    if quantity == 0:\n" in conversation
    assert "    > Allow once\n" in conversation
    assert "+def calculate_total(" in conversation
    assert "    | Ran 4 tests in " in conversation
    assert "demo_shop/cart.py:13: function calculate_total" in conversation
    assert "(tier catalog): list_symbols, find_problems, open_file" in verdict
    assert "changed on the disk: demo_shop/cart.py, demo_shop/checkout.py" in verdict
    assert contents(project) == before
    assert [part for part in shown_in_readme() if part not in " ".join(screen.split())] == [], "run `make picture`"
    assert "\x1b" not in screen
    assert max(len(line) for line in screen.splitlines()) <= 80


def test_settings_and_a_model_of_the_users_do_not_count(project: Path, home: Path) -> None:
    (home / "punie").mkdir()
    (home / "punie" / "config.toml").write_text("this is not TOML at all [")
    code, screen, _ = demo(home, "--project", str(project), PUNIE_MODEL="anthropic:none")
    assert code == 0, screen


def test_in_place_it_writes_one_new_file_and_touches_nothing_else(project: Path, home: Path) -> None:
    before = contents(project)
    code, screen, _ = demo(home, "--project", str(project), "--in-place")
    assert code == 0, screen
    after = contents(project)
    new = set(after) - set(before)
    assert new == {"punie-demo-note.md"}
    assert {name: after[name] for name in before} == before
    assert "finds no problem" in after["punie-demo-note.md"].decode()
    assert "punie-demo-note.md is yours to keep or delete" in screen


def test_interactive_it_does_what_the_person_types(project: Path, home: Path) -> None:
    code, screen, _ = demo(home, "--project", str(project), "--interactive", stdin="\n4\nrename it\n1\n4\n")
    assert code == 0, screen
    assert "Permission denied" in screen
    assert "Reject: Editing demo_shop/cart.py" in screen
    assert "Allow once: Rename symbol" in screen
    assert "You:   rename it" in screen
    assert "changed on the disk: demo_shop/cart.py, demo_shop/checkout.py" in screen


def test_interactive_the_end_of_input_ends_it(project: Path, home: Path) -> None:
    code, screen, _ = demo(home, "--project", str(project), "--interactive")
    assert code == 0
    assert "You:   " not in screen


def test_a_model_of_the_users_is_asked_in_plain_words(project: Path, home: Path) -> None:
    script = home / "model.json"
    calls = [
        {"call": {"name": "find_problems", "arguments": {}}},
        {"call": {"name": "write_file", "arguments": {"path": "a.txt", "content": "b"}}},
    ]
    script.write_text(json.dumps({"turns": [calls, [{"text": "done"}]]}))
    code, screen, _ = demo(home, "--project", str(project), "--model", f"script:{script}")
    assert code == 0, screen
    assert "Use the IDE's tools to find out what is wrong in demo_shop" in screen
    assert "changed on the disk: a.txt" in screen


def test_a_model_that_does_nothing_is_not_a_success(project: Path, home: Path) -> None:
    script = home / "model.json"
    script.write_text(json.dumps({"turns": [[{"text": "I would rather not."}], [{"text": "No."}]]}))
    code, screen, _ = demo(home, "--project", str(project), "--model", f"script:{script}")
    assert code == 1
    assert "no discovered tool was used; no permission was asked for; no file changed" in screen.replace("\n", " ")


def test_a_model_that_cannot_be_reached_is_named_as_the_cause(project: Path, home: Path) -> None:
    script = home / "model.json"
    script.write_text(json.dumps({"turns": [[{"fail": {"kind": "rate_limit", "message": "too many requests"}}]]}))
    code, screen, _ = demo(home, "--project", str(project), "--model", f"script:{script}")
    assert code == 4
    assert "too many requests" in screen


def test_a_project_that_is_no_folder_is_wrong_usage(home: Path) -> None:
    code, screen, errors = demo(home, "--project", str(home / "missing"))
    assert (code, screen) == (2, "")
    assert "no folder" in errors


@pytest.mark.parametrize("text", ["\x1b[31m\u202etxt.exe\u200b\x07", "\x1b]0;owned\x07"])
def test_what_a_model_says_cannot_steer_the_terminal(project: Path, home: Path, text: str) -> None:
    script = home / "model.json"
    hostile = {"call": {"name": "run_command", "arguments": {"command": f"printf '%s' '{text}'"}}}
    script.write_text(json.dumps({"turns": [[{"text": text}, {"thought": text}, hostile], []]}))
    _, screen, _ = demo(home, "--project", str(project), "--model", f"script:{script}")
    assert not {"\x1b", "\u202e", "\u200b", "\x07"} & set(screen)


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_in_order_and_leaves_nothing_behind(
    project: Path, home: Path, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    process = subprocess.Popen(
        agent_command("demo", "--project", str(project), "--interactive"), cwd=home, text=True,
        env=clean_environment(home, TMPDIR=str(temporary)), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    while process.stdout.read(1) != "S":  # "Suggested ...": it waits for the person
        assert process.poll() is None
    process.send_signal(number)
    _, errors = process.communicate(timeout=BOUND_S)
    assert (process.returncode, errors) == (code, "")
    assert list(temporary.iterdir()) == []
