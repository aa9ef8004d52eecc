"""The pages under docs/reference say what the code says."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tools import reference


def test_they_are_up_to_date():
    # In a process of its own: the reader of stored events resolves the types that the pages name.
    done = subprocess.run(
        [sys.executable, "-m", "tools.reference"], check=False, capture_output=True, text=True, timeout=120,
        cwd=reference.ROOT,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")


def test_a_page_that_was_changed_by_hand_is_noticed(tmp_path: Path):
    folder = tmp_path / reference.FOLDER
    folder.mkdir(parents=True)
    for name, make in reference.PAGES.items():
        (folder / name).write_text(make(), encoding="utf-8")
    assert reference.stale(tmp_path) == []
    (folder / "errors.md").write_text("# Errors\n", encoding="utf-8")
    (folder / "events.md").unlink()
    assert reference.stale(tmp_path) == ["errors.md", "events.md"]


@pytest.mark.parametrize(
    ("page", "said"),
    [
        ("commands.md", ["### `punie tools call`", "| `--mode MODE` |", "| `PROMPT` |"]),
        ("errors.md", ["| `outside_workspace` | A path resolves", "`rate_limit`", "| 124 | out of time |"]),
        ("events.md", ["## ToolCallAnnounced", "| `call_id` | `str` |"]),
        (
            "messages.md",
            ["| The model MODEL needs a key, and VARIABLE is not set. |", "in the environment that", "`settings` |"],
        ),
        ("public.md", ["## punie.domain", "### ToolProvider", "### plan_tools"]),
    ],
)
def test_they_say_what_people_look_up(page: str, said: list[str]):
    text = reference.PAGES[page]()
    assert [part for part in said if part not in text] == []
    assert "S0-" not in text, "ids of requirements mean nothing to readers"
