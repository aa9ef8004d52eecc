"""`punie ask` with a model file, through the whole of it: a child that thinks, tools, and nothing left behind."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.e2e.promptness import BOUND_S
from tests.tiny_gguf import tiny_model

pytest.importorskip("xllamacpp", reason="the optional package xllamacpp (punie[local]) is not installed")


MARK = "MARK_OF_THIS_TEST"


def marked(mark: str) -> list[str]:
    """The processes that inherited the mark, where the system says (Linux)."""
    found: list[str] = []
    for entry in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={mark}".encode() in entry.read_bytes():
                found.append((entry.parent / "cmdline").read_text(encoding="utf-8", errors="replace"))
        except OSError:
            continue  # it is gone, or somebody else's
    return found


def test_a_turn_with_a_model_file_runs_tools_and_leaves_no_process_behind(tmp_path: Path) -> None:
    model = tiny_model(tmp_path / "tiny.gguf", context_tokens=32_768)
    project = tmp_path / "project"
    project.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "punie", "ask", "--json", "--mode", "read-only", "--model", f"gguf:{model}", "Look."],
        cwd=project,
        env=os.environ | {"PUNIE_HOME": str(tmp_path / "home"), "PUNIE_TURN_MAX_REQUESTS": "2", MARK: str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
        timeout=150,
    )
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    end = lines[-1]
    assert end["type"] == "end", done.stderr
    assert end["stopReason"] in {"end_turn", "max_turn_requests"}
    assert end["usage"]["outputTokens"] > 0
    kinds = {line["update"]["sessionUpdate"] for line in lines if line["type"] == "update"}
    assert kinds & {"agent_message_chunk", "tool_call"}
    sizes = {line["update"]["size"] for line in lines if line.get("update", {}).get("sessionUpdate") == "usage_update"}
    assert sizes == {32_768}
    deadline = time.monotonic() + BOUND_S
    while left := marked(str(tmp_path)):  # the child that thinks ends once it sees that its input has ended
        assert time.monotonic() < deadline, left
        time.sleep(0.05)
