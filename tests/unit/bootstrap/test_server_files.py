"""Files that name servers (S4-02, S4-05, INTERFACES.md section 4)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from punie.bootstrap.server_files import ConfiguredServers, configured_servers, user_servers_file
from punie.domain.servers import ServerOrigin, StdioTransport


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    (folder / ".punie").mkdir(parents=True)
    (tmp_path / "home").mkdir()
    return folder


def read(project: Path, **environ: str) -> ConfiguredServers:
    return configured_servers({"PUNIE_HOME": str(project.parent / "home"), **environ}, str(project))


def write(path: Path, value: Any) -> None:
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")


def test_no_file_means_no_servers(project: Path) -> None:
    assert read(project) == ConfiguredServers()


@pytest.mark.requirement("S4-02", "S4-35")
def test_servers_come_from_the_project_and_from_the_user(project: Path) -> None:
    write(project.parent / "home/mcp.json", {"mcpServers": {"mine": {"command": "m"}}})
    write(project / ".mcp.json", {"mcpServers": {"theirs": {"command": "t"}}})
    write(project / ".punie/mcp.json", {"servers": {"ours": {"command": "o", "type": "stdio"}}, "inputs": []})
    found = read(project)
    assert [(config.name, config.origin.value) for config in found.configs] == [
        ("ours", "project"), ("theirs", "project"), ("mine", "user"),
    ]  # fmt: skip
    assert found.problems == ()


@pytest.mark.parametrize("root", ["mcpServers", "servers", None])
def test_the_map_stands_under_either_key_or_alone(project: Path, root: str | None) -> None:
    servers = {"a": {"command": "x", "args": ["${workspaceFolder}", "${TOKEN}"]}}
    write(project / ".mcp.json", {root: servers} if root else servers)
    (config,) = read(project, TOKEN="t").configs
    assert config.transport == StdioTransport("x", (str(project), "t"), {}, str(project))


@pytest.mark.requirement("S4-05")
@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "not valid JSON"),
        ("[]", "must hold an object, not an array"),
        ('{"mcpServers": []}', '"mcpServers" must be an object'),
        ('{"theme": "dark"}', 'no "mcpServers"'),
        ("\udcff", "not valid JSON"),
        (" " * 1_048_577, "larger than"),
        ("[" * 200_000, "not valid JSON"),
        (json.dumps({"servers": {str(number): {"command": "x"} for number in range(201)}}), "more than 200"),
    ],
)
def test_a_file_that_cannot_be_read_is_named_and_the_others_count(project: Path, content: str, said: str) -> None:
    (project / ".mcp.json").write_bytes(content.encode("utf-8", "surrogateescape"))
    write(project / ".punie/mcp.json", {"a": {"command": "x"}})
    found = read(project)
    assert [config.name for config in found.configs] == ["a"]
    (problem,) = found.problems
    assert problem.startswith(f"{project / '.mcp.json'}: ")
    assert said in problem


def test_a_pipe_in_the_place_of_a_file_holds_nobody_up(project: Path) -> None:
    os.mkfifo(project / ".mcp.json")
    (problem,) = read(project).problems
    assert "not a regular file" in problem


@pytest.mark.requirement("S4-05")
def test_a_server_that_is_there_twice_is_named_and_not_used(project: Path) -> None:
    write(
        project / ".mcp.json", '{"mcpServers": {"a": {"command": "x"}, "a": {"command": "y"}, "b": {"command": "z"}}}'
    )
    first, second = read(project).configs
    assert "'a' is defined twice" in (first.problem or "")
    assert second.problem is None


def test_of_two_files_that_name_a_server_the_stronger_counts_and_it_is_said(project: Path) -> None:
    write(project / ".punie/mcp.json", {"a": {"command": "strong"}})
    write(project / ".mcp.json", {"a": {"command": "weak"}})
    write(project.parent / "home/mcp.json", {"a": {"command": "weaker"}})
    found = read(project)
    assert [config.line for config in found.configs] == ["strong"]
    assert len(found.problems) == 2
    assert all("the server 'a' is not used" in problem for problem in found.problems)


def test_a_missing_variable_disables_that_server_only(project: Path) -> None:
    write(project / ".mcp.json", {"a": {"command": "x", "env": {"K": "${NOPE}"}}, "b": {"command": "${NOPE:-y}"}})
    first, second = read(project).configs
    assert "NOPE is not set" in (first.problem or "")
    assert second.line == "y"


def test_a_projects_file_is_never_taken_for_the_users(project: Path) -> None:
    write(project / ".punie/mcp.json", {"a": {"command": "x"}})
    found = configured_servers({"PUNIE_HOME": str(project / ".punie")}, str(project))
    assert [config.origin for config in found.configs] == [ServerOrigin.PROJECT]


def test_the_users_file_lies_beside_the_settings() -> None:
    assert user_servers_file({"PUNIE_CONFIG": "/x/y/other.toml"}) == Path("/x/y/mcp.json")
    assert user_servers_file({"PUNIE_HOME": "/x"}) == Path("/x/mcp.json")
