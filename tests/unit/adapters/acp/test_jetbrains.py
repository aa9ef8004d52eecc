"""Which servers are a JetBrains IDE's own, and what follows (issue 5, section 2)."""

from __future__ import annotations

import pytest

from punie.adapters.acp.client_servers import with_ide_ways
from punie.domain.servers.server import HttpTransport, ServerConfig, ServerOrigin, StdioTransport

CWD = "/srv/app"


def passed(origin: ServerOrigin = ServerOrigin.CLIENT, **env: str) -> ServerConfig:
    """The server as it was described, looked at once."""
    return with_ide_ways(ServerConfig("idea", StdioTransport("idea", ("stdioMcpServer",), env), origin), CWD)


def test_the_port_names_an_address_of_this_machine_alone() -> None:
    project = {"IJ_MCP_SERVER_PROJECT_PATH": CWD}
    assert passed(IJ_MCP_SERVER_PORT="64342").fallback == HttpTransport("http://127.0.0.1:64342/sse", project, sse=True)


@pytest.mark.parametrize(
    "port", ["", "0", "65536", "-1", "+1", " 64342", "1e3", "64342/x", "1@example.org", "٦٤٣٤٢", "0x50", "9" * 5_000]
)
def test_what_is_no_port_names_no_address(port: str) -> None:
    config = passed(IJ_MCP_SERVER_PORT=port)
    assert config.fallback is None
    assert config.sent_along == {"projectPath": CWD}


@pytest.mark.parametrize("origin", [ServerOrigin.USER, ServerOrigin.PROJECT])
def test_a_file_that_names_the_port_changes_nothing(origin: ServerOrigin) -> None:
    config = passed(origin, IJ_MCP_SERVER_PORT="64342")
    assert (config.fallback, dict(config.sent_along)) == (None, {})


def test_a_program_without_the_port_and_an_address_are_what_they_are() -> None:
    assert passed(IJ_MCP_AUTH_TOKEN="x").fallback is None
    address = ServerConfig("web", HttpTransport("http://127.0.0.1:64342/sse", sse=True), ServerOrigin.CLIENT)
    assert with_ide_ways(address, CWD) is address


@pytest.mark.parametrize(
    ("named", "sent"),
    [
        ("/srv/app", CWD), ("/srv", "/srv"), ("/srv/app/part", "/srv/app/part"),
        ("/srv/other", CWD), ("/srv/app-2", CWD), ("relative", CWD), ("/srv/app/../other", CWD), ("", CWD),
    ],
)  # fmt: skip
def test_the_project_is_the_ides_where_the_session_is_about_it(named: str, sent: str) -> None:
    config = passed(IJ_MCP_SERVER_PORT="1", IJ_MCP_SERVER_PROJECT_PATH=named)
    assert config.sent_along == {"projectPath": sent}
    assert config.fallback is not None
    assert config.fallback.headers == {"IJ_MCP_SERVER_PROJECT_PATH": sent}


@pytest.mark.parametrize("secret", ["", "two\r\nlines", "schlüssel", "\0"])
def test_a_secret_that_is_no_header_is_not_sent(secret: str) -> None:
    config = passed(IJ_MCP_SERVER_PORT="1", IJ_MCP_AUTH_TOKEN=secret)
    assert config.fallback is not None
    assert "IJ_MCP_AUTH_TOKEN" not in config.fallback.headers


def test_a_new_secret_makes_no_other_server_of_it_and_another_port_does() -> None:
    def fingerprint(port: str, secret: str) -> str:
        return passed(IJ_MCP_SERVER_PORT=port, IJ_MCP_AUTH_TOKEN=secret).fingerprint

    assert fingerprint("1", "a") == fingerprint("1", "b")
    assert fingerprint("1", "a") != fingerprint("2", "a")


def test_in_a_file_a_new_secret_is_another_server() -> None:
    one, two = (
        passed(ServerOrigin.PROJECT, IJ_MCP_SERVER_PORT="1", IJ_MCP_AUTH_TOKEN=secret).fingerprint for secret in "ab"
    )
    assert one != two
