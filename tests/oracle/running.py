"""One form at a time: run under `strace`, judged, and what it changed brought back."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from attrs import define, field, frozen

from landbox.environment import child_environment
from tests.oracle.cage import sweep
from tests.oracle.effects import WEIGHTLESS, Effect, Judge
from tests.oracle.forms import Form
from tests.oracle.tracing import TRACED, Reader
from tests.oracle.traps import Place

_TIMEOUT_S = 8.0
_SHORT_S = 1.0
_OFTEN = 3
"""A program that ran into the time limit so often gets the short one from then on: it waits for something to happen."""
_KEPT = ("PATH", "LANG", "RUSTUP_HOME", "CARGO_HOME", "PYENV_ROOT", "NVM_DIR", "JAVA_HOME", "RUSTUP_AUTO_INSTALL")


@frozen
class Ran:
    """A form that was run. `slow`: it was stopped at the time limit."""

    form: Form
    effects: frozenset[Effect]
    slow: bool = False

    @property
    def findings(self) -> list[Effect]:
        """The effects that fail it: for a plain form all but those in its TMPDIR."""
        return sorted(
            effect
            for effect in self.effects
            if effect.kind not in WEIGHTLESS or (self.form.plain and effect.kind == "home")
        )


@define
class Runner:
    """Runs forms in a trap repository; lives as long as the run. `around` puts a box around a command's words."""

    place: Place
    judge: Judge
    around: Callable[[Sequence[str]], Sequence[str]] = field(default=lambda words: words)
    path: str = field(factory=lambda: os.environ["PATH"])
    slow: Counter[str] = field(factory=Counter)

    def environment(self) -> Mapping[str, str]:
        """The variables that Punie gives a command, in a session that has an empty home."""
        ours = {name: os.environ[name] for name in _KEPT if name in os.environ}
        found = Path.home() / ".rustup"
        ours.setdefault("RUSTUP_HOME", str(found))
        own = {"HOME": str(self.place.home), "TMPDIR": str(self.place.scratch), "PATH": self.path, "USER": "oracle"}
        return child_environment(ours | own)

    def run(self, form: Form) -> Ran:
        """Run one form and judge it."""
        trace = self.place.base / "trace"
        command = [
            shutil.which("strace") or "strace",
            "-f",
            "-qq",
            "-y",
            "-s",
            "256",
            "-o",
            str(trace),
            "-e",
            "signal=none",
        ]
        command += ["-e", f"trace={','.join(TRACED)}", "--seccomp-bpf", "--"]
        limit = _SHORT_S if self.slow[form.program] >= _OFTEN else _TIMEOUT_S
        slow = self._run([*command, *self.around(("/bin/sh", "-c", form.line))], limit)
        self.slow[form.program] += slow
        reader = Reader(str(self.place.project))
        with trace.open(encoding="utf-8", errors="replace") as lines:
            effects = self.judge.effects(list(reader.read(lines)), reader.processes)
        trace.unlink()
        sweep(reader.processes, self.place.scratch)
        self.judge.undo(effects)
        return Ran(form, frozenset(effects), slow)

    def _run(self, command: Sequence[str], limit: float) -> bool:
        """Run it in a session of its own, without input; whether it had to be stopped."""
        output = self.place.base / "output"
        with output.open("wb") as said:
            process = subprocess.Popen(
                command, cwd=self.place.project, env=self.environment(), stdin=subprocess.DEVNULL, stdout=said,
                stderr=subprocess.STDOUT, start_new_session=True,
            )  # fmt: skip
            try:
                process.wait(limit)
            except subprocess.TimeoutExpired:
                with suppress(OSError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                return True
        return False


def installed(program: str, path: str) -> bool:
    """Whether the shell finds the program, one of its own included."""
    if program.startswith("("):
        return True
    done = subprocess.run(
        ["/bin/sh", "-c", 'command -v -- "$1"', "sh", program], env={"PATH": path}, check=False, capture_output=True
    )
    return done.returncode == 0
