"""The sandbox as the settings ask for it."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from punie.adapters.local.programs.boxes import PROGRAM
from tests.e2e import scripts
from tests.e2e.raw_client import clean_environment, run_cli
from tests.e2e.scripts import RESULT, call

SETTINGS = '[permissions]\nsandbox = "bubblewrap"\n[[permissions.rules]]\ndecision = "allow"\ntool = "run_command"\n'


@pytest.fixture
def home(tmp_path: Path) -> Path:
    folder = tmp_path / "punie-home"
    (folder / "punie").mkdir(parents=True)
    (folder / "punie" / "config.toml").write_text(SETTINGS)
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def test_asked_for_and_missing_is_a_refusal(home: Path, project: Path, tmp_path: Path) -> None:
    tools = tmp_path / "bin"
    tools.mkdir()
    (tools / "sh").symlink_to("/bin/sh")
    model = scripts.write(tmp_path / "s.json", [call("run_command", command="echo made > made"), RESULT])
    done = run_cli("ask", "--model", model, "go", env=clean_environment(home, PATH=str(tools)), cwd=project)
    assert "bubblewrap" in done.stdout
    assert not (project / "made").exists()


@pytest.mark.skipif(shutil.which(PROGRAM) is None, reason="bubblewrap (bwrap) is not installed on this machine")
def test_a_boxed_command_changes_the_project_and_nothing_else(home: Path, project: Path, tmp_path: Path) -> None:
    outside = Path("/var/tmp") / f"punie-e2e-{os.getpid()}"
    (project / "look.sh").write_text(f"cat {home}/punie/config.toml\n")  # a line that names the file is denied
    line = f"echo made > made; echo out > {outside}; sh look.sh"
    model = scripts.write(tmp_path / "s.json", [call("run_command", command=line), RESULT])
    done = run_cli("ask", "--model", model, "go", env=clean_environment(home), cwd=project)
    assert (project / "made").read_text() == "made\n"
    assert "Read-only file system" in done.stdout
    assert not outside.exists()
    assert "bubblewrap" not in done.stdout
