"""A short form of `make rewinds`, and a proof that it would see what it looks for."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.e2e.raw_client import clean_environment
from tests.rewinds.run import RewindRun, Rewound

pytestmark = [pytest.mark.timeout(240), pytest.mark.skipif(not shutil.which("git"), reason="git is run")]


def test_after_a_rewind_everything_is_as_it_was_and_after_a_kill_as_before_or_after_it(tmp_path: Path) -> None:
    run = RewindRun(tmp_path.resolve(), 29, clean_environment(tmp_path / "clean"))
    assert run.kill(2).faults == []
    found = run.rewind(1)
    assert found.faults == []
    assert (found.kills, found.sessions) == (2, 2)
    assert found.turns > 3


def test_a_file_that_is_not_as_it_was_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def undo(rewound: Rewound, *_words: str) -> dict[str, object]:
        (rewound.top / "planted").write_text("not of the session")
        return {"kept": []}

    monkeypatch.setattr(Rewound, "undo", undo)
    found = RewindRun(tmp_path.resolve(), 29, clean_environment(tmp_path / "clean")).rewind(1)
    assert any("planted" in fault for fault in found.faults)
    assert any("conversation" in fault for fault in found.faults)
