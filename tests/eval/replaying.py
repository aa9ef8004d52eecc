"""Recorded tasks run again: `punie sessions replay` for each, whose tools are answered from its log."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.eval.playing import PUNIE
from tests.eval.project import UnsoundTaskError


def recorded_in(folder: Path) -> list[Path]:
    """The sessions that `--record` wrote there. Raises `UnsoundTaskError` where there is none."""
    files = sorted(folder.glob("*.jsonl"))
    if not files:
        raise UnsoundTaskError(f"{folder} has no recorded sessions: make them with --record")
    return files


def task_of(file: Path) -> tuple[str, int]:
    """The task that was recorded, and which attempt at it."""
    task, _, attempt = file.stem.rpartition("-")
    return (task, int(attempt)) if attempt.isdecimal() else (file.stem, 1)


def replayed(file: Path, model: str | None, engine: str | None, settings: Path | None) -> dict[str, Any]:
    """The row of one replay, in the form of a played task's; `passed` says that it went the way of the record."""
    task, attempt = task_of(file)
    flags = [f for name, value in (("--model", model), ("--engine", engine)) if value for f in (name, value)]
    with tempfile.TemporaryDirectory(prefix="punie-eval-") as home:
        if settings is not None:
            shutil.copy(settings, Path(home) / "config.toml")
        env = {name: value for name, value in os.environ.items() if not name.startswith("PUNIE_")}
        env["PUNIE_HOME"] = home
        taken = _told([*PUNIE, "sessions", "import", str(file), "--json"], env, cwd=home)
        began_s = time.monotonic()
        flags = [flag.replace("{task}", task) for flag in flags]
        told = _told([*PUNIE, "sessions", "replay", taken["imported"], "--json", *flags], env, cwd=str(Path.cwd()))
        elapsed_s = time.monotonic() - began_s
    first = told["divergence"]
    where = "" if first is None else f"{first['what']} in turn {first['turn']}, call {first['call']}"
    other_log = None if told["same"] else f"entry {told['log']['entry']} of the log"
    figures = ("requests", "inputTokens", "outputTokens", "cachedTokens", "costUsd", "sparedS")
    return {
        "task": task, "kind": "replay", "attempt": attempt, "passed": told["same"], "why": where or other_log or "",
        "ended": "whole" if told["whole"] else "early", "denials": [], "failed": 0, "denied": 0, "log": str(file),
        "calls": {"answered": told["calls"]}, "recordedCalls": told["recordedCalls"], "words": told["words"],
        "logEqual": told["log"]["equal"], "timeS": round(elapsed_s, 1), **{name: told[name] for name in figures},
    }  # fmt: skip


def _told(command: list[str], env: dict[str, str], cwd: str) -> dict[str, Any]:
    done = subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, check=False)
    if not done.stdout:
        raise UnsoundTaskError(f"{' '.join(command[3:6])}: {done.stderr.strip()}")
    return dict(json.loads(done.stdout))
