"""Definitions of servers as people have them, and what is remembered of a server, over real pipes (issue 5)."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from tests.architecture.source_tree import ROOT
from tests.e2e.raw_client import clean_environment, run_cli

SERVER = ROOT / "tests" / "fakes" / "mcp_servers" / "stdlib_server.py"
NAME = "helper"


def punie(project: Path, *words: str, **more: str) -> CompletedProcess[str]:
    return run_cli(*words, env=clean_environment(project.parent / "home") | more, cwd=project)


def define(project: Path, *options: str, inputs: list[Any] | None = None, **more: Any) -> None:
    """One server of the project that tells the names of the variables it was given."""
    args = [str(SERVER), "--also", "environment", *options]
    server = {"command": sys.executable, "args": args, **more}
    (project / ".mcp.json").write_text(json.dumps({"servers": {NAME: server}, "inputs": inputs or []}))


def status(project: Path) -> str:
    (row,) = json.loads(punie(project, "servers", "list", "--json").stdout)
    return str(row["status"])


def names_of_variables(project: Path) -> list[str]:
    done = punie(project, "tools", "call", f"{NAME}__environment", "{}", PUNIE_PERMISSIONS_MODE="auto")
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_a_projects_env_file_reaches_its_server_and_is_part_of_what_was_approved(project: Path) -> None:
    (project / ".env").write_text("FROM_FILE=s3cret\n")
    define(project, envFile="${workspaceFolder}/.env", env={"FROM_ENTRY": "1"})
    approved = punie(project, "servers", "approve", NAME, "--yes")
    assert approved.returncode == 0, approved.stderr
    assert "FROM_FILE" in approved.stdout
    assert "s3cret" not in approved.stdout
    assert {"FROM_FILE", "FROM_ENTRY"} <= set(names_of_variables(project))
    (project / ".env").write_text("FROM_FILE=another\n")
    assert status(project) == "needs-approval"


def test_an_env_file_that_is_not_there_and_an_input_without_a_value_are_told_in_words(project: Path) -> None:
    define(project, envFile="none.env")
    listed = punie(project, "servers", "list")
    assert listed.returncode == 0
    assert "none.env is not there" in listed.stdout
    asked = {"id": "token", "type": "promptString", "description": "The token", "password": True}
    define(project, env={"TOKEN": "${input:token}"}, inputs=[asked])
    listed = punie(project, "servers", "list")
    assert "it needs the input 'token' (The token)" in listed.stdout
    assert "write ${env:NAME} in place of ${input:token}" in listed.stdout


def test_an_input_with_a_default_is_put_in(project: Path) -> None:
    asked = {"id": "word", "type": "pickString", "options": ["a", "b"], "default": "--without-tools"}
    define(project, "${input:word}", inputs=[asked])
    assert "--without-tools" in punie(project, "servers", "approve", NAME, "--yes").stdout
    assert "0 tools" in punie(project, "servers", "check").stdout


def test_a_key_that_means_nothing_here_is_named(project: Path) -> None:
    define(project, headersHelper="print-token", autoApprove=["x"])
    said = punie(project, "servers", "list").stderr
    assert "headersHelper is not run" in said
    assert "'autoApprove' is not known, and not used" in said


def test_an_old_server_that_ignores_what_it_does_not_know_is_waited_for_once(project: Path, tmp_path: Path) -> None:
    """The library's wait for it, 10 s, is not ours to shorten; the second process does not have it."""
    notes = tmp_path / "notes"
    args = [str(SERVER), "--notes", str(notes), "--ignore", "server/discover"]
    home = Path(clean_environment(project.parent / "home")["PUNIE_HOME"])
    (home / "mcp.json").write_text(json.dumps({NAME: {"command": sys.executable, "args": args}}))
    took_ms: list[float] = []
    for _ in range(2):
        (check,) = json.loads(punie(project, "servers", "check", "--json").stdout)
        assert check["ok"]
        took_ms.append(check["elapsedMs"])
    asked = [line for line in notes.read_text().splitlines() if line.startswith("asked")]
    assert asked == ["asked server/discover", "asked initialize", "asked initialize"]
    assert took_ms[1] < took_ms[0]
