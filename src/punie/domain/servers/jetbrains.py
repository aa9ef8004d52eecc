"""The server of tools that a JetBrains IDE passes with a session: its own, as a program and at an address.

The IDE describes it as a program with the port in its environment. Its launcher may hand the call over to the IDE
that runs already and end without a word; the same tools are then at that port of this machine, in the older form with
events. Everything else about such a server is as about any other.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from punie.domain.servers.server import HttpTransport, ServerConfig, ServerOrigin, StdioTransport
from punie.domain.values.paths import is_inside

PORT = "IJ_MCP_SERVER_PORT"
PROJECT = "IJ_MCP_SERVER_PROJECT_PATH"
TOKEN = "IJ_MCP_AUTH_TOKEN"  # noqa: S105 - the name of a variable, and of the header that carries it
PROJECT_ARGUMENT = "projectPath"


def with_ide_ways(config: ServerConfig, cwd: str) -> ServerConfig:
    """The server as it is, or, where a client says that it is its own IDE's, with its address and the project's path.

    Only a client's word counts: what a file names is reached as it is written there, and in no other way.
    """
    transport = config.transport
    if config.origin is not ServerOrigin.CLIENT or not isinstance(transport, StdioTransport):
        return config
    if PORT not in transport.env:
        return config
    project = _project(transport.env.get(PROJECT, ""), cwd)
    return evolve(
        config,
        fallback=_address(transport.env, project),
        sent_along={PROJECT_ARGUMENT: project},
        fleeting=frozenset({TOKEN}),
    )


def _project(named: str, cwd: str) -> str:
    """The project that the IDE names where the session is about it, or about a part of it; else the session's folder.

    So no call goes to another project than the one the session was opened for.
    """
    related = named and (is_inside(named, (cwd,)) or is_inside(cwd, (named,)))
    return named if related else cwd


def _address(env: Mapping[str, str], project: str) -> HttpTransport | None:
    """This machine and nothing else; None where the port is none. The variables go along as headers of their names."""
    port = env[PORT]
    if not (port.isascii() and port.isdecimal() and len(port) <= 5 and 1 <= int(port) <= 65_535):
        return None
    said = {PROJECT: project, TOKEN: env.get(TOKEN, "")}
    headers = {name: value for name, value in said.items() if value and value.isascii() and value.isprintable()}
    return HttpTransport(f"http://127.0.0.1:{int(port)}/sse", headers, sse=True)
