"""`punie chat` at a terminal: keys, questions, sizes, hostile texts, and how it ends; also in tmux, at night."""

from __future__ import annotations

import re
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.e2e import scripts
from tests.e2e.at_a_terminal import Terminal
from tests.e2e.in_tmux import TMUX, Tmux
from tests.e2e.raw_client import agent_command, clean_environment, run_cli
from tests.e2e.screen import Screen
from tests.nightly import NIGHTLY

EVIL = "\x1b]0;owned\x07\x1b[2J\x1b[31mred\x1b]52;c;aGk=\x07\u202eRTL\u202c\x9b5n\x1b[6n\x1b[?1049hend"
EDIT = scripts.call("edit_file", path="app.py", old_text="one = 1", new_text="one = 11")
SPINNING = re.compile("[\u2800-\u28ff] ")
ANSWER = "# Title\n\nSome **bold** words.\n\n- an item\n\n```python\nprint(1)\n```\n\nThe end."


def running(line: str) -> scripts.Item:
    return scripts.call("run_command", command=line)


def said(text: str) -> Callable[[Screen], bool]:
    """The text is there, nothing runs any more, and the line waits for the next prompt below it."""

    def holds(screen: Screen) -> bool:
        above = screen.lines[screen.row - 1]
        return text in screen.text and screen.lines[screen.row].startswith(">") and not SPINNING.match(above)

    return holds


@pytest.fixture
def project(tmp_path: Path) -> Path:
    made = tmp_path / "mine"
    made.mkdir()
    (made / "app.py").write_text("one = 1\n")
    (made / "notes.md").write_text("The word is marigold.\n")
    (made / "evil.txt").write_text(f"{EVIL}\n")
    return made


def chat(
    tmp_path: Path, project: Path, *turns: list[scripts.Item], more: tuple[str, ...] = (), **how: object
) -> Terminal:
    model = scripts.write(tmp_path / "play.json", *turns)
    (tmp_path / "home").mkdir(exist_ok=True)
    env = clean_environment(tmp_path / "home", **{name: str(value) for name, value in how.items() if name.isupper()})
    sizes = {name: value for name, value in how.items() if name.islower()}
    return Terminal(agent_command("chat", "--model", model, *more), env, project, **sizes)  # type: ignore[arg-type]


def test_a_conversation_with_questions_keys_and_sizes(tmp_path: Path, project: Path) -> None:
    turns = [
        [scripts.thought("Let me see."), scripts.text(ANSWER)],
        [EDIT, scripts.text("edited it")],
        [EDIT, scripts.text("never said")],
        [running("seq 1 10000"), scripts.text("counted")],
        [running("echo begun; sleep 60"), scripts.text("never said")],
        [scripts.text("a late answer")],
    ]
    with chat(tmp_path, project, *turns, PAGER="cat") as terminal:
        screen = terminal.screen
        terminal.wait_for(said("ask"))
        terminal.enter("hello")
        terminal.wait_for(said("The end."))
        assert "# Title" not in screen.text
        assert "**" not in screen.text
        assert screen.style_of("bold").bold
        assert screen.style_of("Let me see.").dim

        terminal.enter("edit it")
        terminal.wait_for("(Enter rejects)")
        assert screen.style_of("-one = 1").front != screen.style_of("+one = 11").front
        terminal.enter("perhaps")
        terminal.wait_for("That was not understood")
        assert (project / "app.py").read_text() == "one = 1\n"
        terminal.resize(40, 24)
        terminal.enter("y")
        terminal.wait_for(said("edited it"))
        assert (project / "app.py").read_text() == "one = 11\n"
        assert screen.lines[screen.row + 1].startswith("ask")
        terminal.resize(80, 24)

        (project / "app.py").write_text("one = 1\n")
        terminal.enter("again")
        terminal.wait_for(lambda screen: screen.lines[screen.row].startswith("?"))
        terminal.press("ctrl-c")
        terminal.wait_for(said("Stopped."))
        assert (project / "app.py").read_text() == "one = 1\n"

        terminal.enter("count")
        terminal.wait_for(said("counted"))
        assert "9,996 more lines" in screen.text
        terminal.press("ctrl-o")
        terminal.wait_for(lambda screen: "[exit code 0]" in screen.text and "\n5000\n" in screen.everything)
        terminal.wait_for(said("10000"))

        terminal.enter("wait")
        terminal.wait_for("Running echo begun; sleep 60 ")
        terminal.type("typed meanwhile")
        terminal.resize(60, 12)
        terminal.wait_for("> typed meanwhile")
        terminal.press("ctrl-c")
        terminal.wait_for(lambda screen: "Stopped." in screen.text and "> typed meanwhile" in screen.text)
        terminal.press("enter")
        terminal.wait_for(said("a late answer"))

        terminal.type("/mo")
        terminal.wait_for("Show the model")
        terminal.press("ctrl-c")
        terminal.wait_for(lambda screen: screen.lines[screen.row] == ">")
        terminal.enter("/nosuch thing")
        terminal.wait_for(said("There is no command /nosuch"))
        terminal.type("first")
        terminal.press("alt-enter")
        terminal.type("second")
        terminal.wait_for("  second")
        terminal.press("ctrl-c")
        terminal.wait_for(lambda screen: screen.lines[screen.row] == ">")
        terminal.press("ctrl-c", "ctrl-c")
        assert terminal.end() == 130
        assert "To go on: punie chat --session " in terminal.screen.text
        assert not screen.unknown
        assert not screen.told
        assert "Traceback" not in terminal.written


def test_nothing_that_a_terminal_obeys_comes_through_and_no_color_means_none(tmp_path: Path, project: Path) -> None:
    turns = [
        [scripts.thought(EVIL), scripts.text(f"{EVIL}\n\n```\n{EVIL}\n```\n")],
        [running("cat evil.txt"), scripts.text("shown")],
        [running(f"printf '{EVIL}' > made.txt"), scripts.text("asked")],
        [scripts.text("word " * 50_000 + "\n\nall of it")],
        [scripts.text("got the paste")],
    ]
    with chat(tmp_path, project, *turns, columns=40, rows=20, NO_COLOR=1) as terminal:
        screen = terminal.screen
        terminal.wait_for(said("ask"))
        terminal.enter("hello")
        terminal.wait_for(lambda screen: screen.text.count("end") >= 2 and screen.lines[screen.row] == ">")
        terminal.enter("show the file")
        terminal.wait_for(said("shown"))
        terminal.enter("/open")
        terminal.wait_for(said("[1]"))
        terminal.enter("ask me")
        terminal.wait_for("(Enter rejects)")
        terminal.press("enter")
        terminal.wait_for(said("asked"))
        assert not (project / "made.txt").exists()
        terminal.enter("much")
        terminal.wait_for(said("all of it"))
        terminal.paste(f"{EVIL}\n" * 20_000)
        terminal.wait_for("20,000 lines")
        terminal.press("enter")
        terminal.wait_for(said("got the paste"))
        assert (screen.told, screen.unknown, screen.bells) == ([], [], 0)
        assert "1049" not in screen.modes
        assert "\u202e" not in terminal.written
        colours = {cell.style.front for row in screen.cells for cell in row}
        assert colours == {None}
        terminal.send(signal.SIGTERM)
        assert terminal.end() == 143
        assert "2004" not in screen.modes
        assert "25" in screen.modes


def test_a_dumb_terminal_gets_lines(tmp_path: Path, project: Path) -> None:
    with chat(tmp_path, project, [EDIT, scripts.text("**done**")], term="dumb") as terminal:
        terminal.wait_for(">")
        terminal.enter("edit it")
        terminal.wait_for("Enter rejects")
        terminal.enter("maybe")
        terminal.wait_for("not understood")
        terminal.enter("1")
        terminal.wait_for("**done**")
        terminal.press("ctrl-d")
        assert terminal.end() == 0
        assert "\x1b" not in terminal.written
    assert (project / "app.py").read_text() == "one = 11\n"


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        ("/tools\n/nope\n", 2),
        ("/read nowhere.txt\n", 1),
        ('/call write_file {"path": "new.txt", "content": ""}\n', 3),
        ('/nope\n/call write_file {"path": "new.txt", "content": ""}\n/read app.py\n', 0),
    ],
)
def test_without_a_screen_the_exit_code_is_that_of_the_last_prompt(
    tmp_path: Path, project: Path, lines: str, code: int
) -> None:
    done = run_cli("chat", "--model", "direct", env=clean_environment(tmp_path / "home"), cwd=project, stdin=lines)
    assert done.returncode == code
    assert not (project / "new.txt").exists()


@pytest.mark.skipif(TMUX is None or not NIGHTLY, reason="for a nightly job, where tmux is installed")
def test_in_tmux_a_conversation_survives_narrow_windows(tmp_path: Path, project: Path) -> None:
    turns = [
        [scripts.text(ANSWER)],
        [EDIT, scripts.text("edited it")],
        [running("seq 1 10000"), scripts.text("counted")],
    ]
    model = scripts.write(tmp_path / "play.json", *turns)
    (tmp_path / "home").mkdir()
    env = clean_environment(tmp_path / "home")
    with Tmux(agent_command("chat", "--model", model), env, project, tmp_path) as terminal:
        terminal.wait_for("ask")
        terminal.enter("hello")
        terminal.wait_for("The end.")
        terminal.enter("edit it")
        terminal.wait_for("(Enter rejects)")
        terminal.resize(40, 12)
        terminal.resize(100, 30)
        terminal.enter("y")
        terminal.wait_for("edited it")
        assert (project / "app.py").read_text() == "one = 11\n"
        terminal.paste("two\nlines")
        terminal.wait_for("lines")
        terminal.press("Enter")
        terminal.wait_for("counted")
        terminal.press("C-c", "C-c")
        assert terminal.end() == 130
        assert "To go on" in terminal.everything
