"""Ask `punie permissions check --json`, a real process with an empty home, and count what it said."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from attrs import frozen

from tests.e2e.raw_client import clean_environment, run_cli
from tests.shellsight.corpus.lines import Line

#: The session's only root. Nothing is run, so it need not exist.
ROOT = "/repo"
_TIMEOUT_S = 240.0
_SHOWN = 100


class BrokenError(Exception):
    """The command failed or did not answer with one verdict a line, so there is nothing to count."""


@frozen
class Answer:
    """What was said about one line."""

    line: Line
    verdict: str
    rule: str | None
    reason: str

    def told(self) -> dict[str, Any]:
        """For a report: invisible characters are escaped, long lines cut."""
        text = ascii(self.line.text)
        return {
            "class": self.line.kind,
            "line": text if len(text) <= _SHOWN else text[:_SHOWN] + "...",
            "verdict": self.verdict,
            "rule": self.rule,
            "reason": self.reason,
        }


@frozen
class Score:
    """A corpus in one mode: how many of its lines ran without a question."""

    mode: str
    answers: tuple[Answer, ...]

    @property
    def unasked(self) -> tuple[Answer, ...]:
        return tuple(answer for answer in self.answers if answer.verdict == "allow")

    @property
    def asked(self) -> tuple[Answer, ...]:
        """Asked about or refused."""
        return tuple(answer for answer in self.answers if answer.verdict != "allow")

    @property
    def share(self) -> float:
        """The part that ran without a question, 0 to 1."""
        return len(self.unasked) / len(self.answers)

    def told(self, wrong: Sequence[Answer]) -> dict[str, Any]:
        """The score as JSON, with the answers that should have been others."""
        return {
            "mode": self.mode,
            "lines": len(self.answers),
            "unasked": len(self.unasked),
            "share": round(self.share, 4),
            "wrongByClass": dict(Counter(answer.line.kind for answer in wrong)),
            "wrong": [answer.told() for answer in wrong],
        }


def judge(lines: Sequence[Line], mode: str, *, settings: str = "") -> Score:
    """Judge the lines that are held to the mode; `settings` is more TOML for the settings file.

    Raises:
      BrokenError: the command failed, or did not answer every line with a verdict.
    """
    held = [line for line in lines if mode in line.modes]
    with TemporaryDirectory() as folder:
        home = Path(folder)
        environment = clean_environment(home)
        (home / "punie/config.toml").write_text(f'[permissions]\nmode = "{mode}"\n{settings}', "utf-8")
        done = run_cli(
            "permissions",
            "check",
            "--json",
            env=environment,
            cwd=home,
            stdin="".join(_request(line) for line in held),
            timeout_s=_TIMEOUT_S,
        )
    if done.returncode != 0:
        raise BrokenError(f"punie permissions check exited {done.returncode}: {done.stderr.strip()[-2000:]}")
    decisions = [_decision(text) for text in done.stdout.split("\n") if text]
    if len(decisions) != len(held):
        raise BrokenError(f"{len(held)} lines in, {len(decisions)} decisions out")
    answers = (
        Answer(line, said["verdict"], said.get("rule"), said.get("reason") or "")
        for line, said in zip(held, decisions, strict=True)
    )
    return Score(mode, tuple(answers))


def _request(line: Line) -> str:
    asked = {"tool": "run_command", "arguments": {"command": line.text}, "cwd": ROOT}
    return json.dumps(asked) + "\n"


def _decision(text: str) -> Mapping[str, Any]:
    try:
        said = json.loads(text)
    except ValueError as error:
        raise BrokenError(f"not JSON: {text[:200]!r}") from error
    if not isinstance(said, dict) or said.get("verdict") not in {"allow", "ask", "deny"}:
        raise BrokenError(f"no verdict: {text[:200]!r}")
    return said
