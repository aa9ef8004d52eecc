"""A command in tmux: another terminal than our own model of one, driven from outside."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from attrs import define, field

from tests.e2e.at_a_terminal import LIMIT_S

TMUX: Final = shutil.which("tmux")
NAP_S: Final = 0.02


@define(eq=False)
class Tmux:
    """A tmux server of its own with one window; a context manager that ends it. `folder` holds its socket.

    The program's end leaves its screen to look at.
    """

    command: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    folder: Path
    columns: int = 80
    rows: int = 24
    _socket: str = field(init=False)

    def __enter__(self) -> Self:
        self._socket = str(self.folder / "tmux")
        (self.folder / "tmux.conf").write_text("set -g remain-on-exit on\nset -g history-limit 50000\n")
        self._run(
            "-f", str(self.folder / "tmux.conf"), "new-session", "-d", "-x", str(self.columns), "-y", str(self.rows),
            "-c", str(self.cwd), *self.command, env=dict(self.env) | {"TERM": "xterm-256color"},
        )  # fmt: skip
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        self._run("kill-server", check=False)

    @property
    def text(self) -> str:
        """What is on the screen."""
        return self._run("capture-pane", "-p").rstrip("\n")

    @property
    def everything(self) -> str:
        """What is on the screen, with what was scrolled away."""
        return self._run("capture-pane", "-p", "-S", "-").rstrip("\n")

    @property
    def exit_code(self) -> int | None:
        """The program's exit code; None while it runs."""
        said = self._run("display-message", "-p", "#{?pane_dead,#{pane_dead_status},}").strip()
        return int(said) if said else None

    def type(self, text: str) -> None:
        """Type text."""
        self._run("send-keys", "-l", text)

    def press(self, *names: str) -> None:
        """Press keys, by tmux' names: `Enter`, `Tab`, `C-c`, `M-Enter`, `Up`."""
        self._run("send-keys", *names)

    def enter(self, text: str) -> None:
        """Type a line and press Enter."""
        self.type(text)
        self.press("Enter")

    def paste(self, text: str) -> None:
        """Paste: in brackets where the program asked for them."""
        self._run("load-buffer", "-", said=text)
        self._run("paste-buffer", "-p")

    def resize(self, columns: int, rows: int) -> None:
        """Give the window another size; tmux wraps its lines anew."""
        self._run("resize-window", "-x", str(columns), "-y", str(rows))

    def wait_for(self, what: str | Callable[[str], bool], wanted: str = "", *, limit_s: float = LIMIT_S) -> None:
        """Return once the text is on the screen, or the screen's text is as wanted. Nobody tells, hence the naps."""
        holds = what if callable(what) else lambda shown: what in shown
        deadline_s = time.monotonic() + limit_s
        while not holds(shown := self.text):
            assert time.monotonic() < deadline_s, f"not seen: {wanted or what}\n--- but:\n{shown}"
            time.sleep(NAP_S)

    def end(self, *, limit_s: float = LIMIT_S) -> int:
        """Wait for the program's end and return its exit code."""
        deadline_s = time.monotonic() + limit_s
        while (code := self.exit_code) is None:
            assert time.monotonic() < deadline_s, f"still running:\n{self.text}"
            time.sleep(NAP_S)
        return code

    def _run(self, *words: str, said: str = "", check: bool = True, env: Mapping[str, str] | None = None) -> str:
        assert TMUX is not None
        done = subprocess.run(
            [TMUX, "-u", "-S", self._socket, *words], input=said, text=True, capture_output=True, check=False, env=env
        )
        assert not check or not done.returncode, (words, done.stderr)
        return done.stdout
