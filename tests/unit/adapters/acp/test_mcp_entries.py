"""Servers that a client sends with a session."""

from __future__ import annotations

import json
from typing import Any

import pytest
from msgspec import Raw

from punie.adapters.acp.client_servers import decode_servers
from punie.domain.servers.server import HttpTransport, ServerConfig, ServerOrigin, StdioTransport


def decoded(*entries: Any) -> tuple[ServerConfig, ...]:
    return decode_servers([Raw(json.dumps(entry).encode()) for entry in entries], "/project")


def test_each_stable_form_is_understood() -> None:
    program = {"name": "files", "command": "/bin/files", "args": ["${HOME}"], "env": [{"name": "A", "value": "1"}]}
    header = {"name": "Authorization", "value": "Bearer ${TOKEN}"}
    http = {"type": "http", "name": "web", "url": "https://x.example/mcp", "headers": [header]}
    sse = {"type": "sse", "name": "old", "url": "https://x.example/sse", "headers": []}
    servers = decoded(program, http, sse)
    assert [server.transport for server in servers] == [
        StdioTransport("/bin/files", ("${HOME}",), {"A": "1"}, "/project"),
        HttpTransport("https://x.example/mcp", {"Authorization": "Bearer ${TOKEN}"}),
        HttpTransport("https://x.example/sse", {}, sse=True),
    ], "nothing is put in for variables: the client sends what it means"
    assert {(server.origin, server.problem) for server in servers} == {(ServerOrigin.CLIENT, None)}


def test_no_servers_are_no_servers() -> None:
    assert decode_servers(None, "/project") == decoded() == ()


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (7, "must be an object"),
        (None, "must be an object"),
        ({"command": "x", "args": []}, "its name must be a text"),
        ({"name": "a", "command": "", "args": [], "env": []}, "its command is empty"),
        ({"name": "a", "command": "x", "env": [7]}, "its env must be an object"),
        ({"name": "a", "command": "x", "env": [{"name": "A"}, {"value": True}]}, "must be a text"),
        ({"name": "a", "type": "http", "url": "nowhere"}, "not an http or https address"),
        ({"name": "a", "type": "acp", "id": "1"}, "its serverId must be a text"),
        ({"name": "a", "type": "acp", "serverId": ""}, "its serverId must be a text"),
        ({"name": " ", "type": "acp", "serverId": "1"}, "a server needs a name"),
    ],
)
def test_a_bad_entry_says_why_and_the_others_work(entry: Any, said: str) -> None:
    bad, good = decoded(entry, {"name": "good", "command": "x", "args": [], "env": []})
    assert said in (bad.problem or "")
    assert good.problem is None


def test_a_second_one_of_a_name_makes_both_unusable() -> None:
    (only,) = decoded(*({"name": "a", "command": command} for command in "xy"))
    assert "twice" in (only.problem or "")
