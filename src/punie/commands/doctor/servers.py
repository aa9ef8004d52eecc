"""The doctor's look at the MCP servers: those that may run are connected to, and their tools listed."""

from __future__ import annotations

from collections.abc import Sequence

import anyio

from punie.application.servers.registry import ServerRegistry
from punie.bootstrap.server_files import configured_servers
from punie.bootstrap.servers_here import servers_here
from punie.commands.doctor.report import Check
from punie.commands.doctor.side_by_side import Case
from punie.domain.servers.server import HttpTransport, ServerConfig, ServerInfo, ServerStatus
from punie.ports.servers import ServerUnavailableError

SERVER_S = 20.0
SERVERS_LIMIT_S = SERVER_S + 10


async def servers(case: Case) -> Sequence[Check]:
    """A check for each server that is configured here, and one for each file that cannot be read."""
    configured = configured_servers(case.environ, case.cwd)
    found = [_problem(problem) for problem in configured.problems]
    if not configured.configs:
        return found or [Check("servers", ok=True, detail="no MCP servers are configured")]
    async with servers_here(case.environ, case.cwd, configured.configs, case.log) as registry:
        checks: dict[str, Check] = {}

        async def ask(config: ServerConfig) -> None:
            checks[config.name] = await _asked(registry, config, case)

        async with anyio.create_task_group() as tasks:
            for config in configured.configs:
                tasks.start_soon(ask, config)
    return [*found, *(checks[config.name] for config in configured.configs)]


def _problem(problem: str) -> Check:
    return Check("servers", ok=False, detail=problem, fix="Correct that file; punie servers list shows what is read.")


async def _asked(registry: ServerRegistry, config: ServerConfig, case: Case) -> Check:
    name = f"server {config.name}"
    if config.disabled:
        return Check(name, ok=True, detail=f"skipped: it is disabled in {config.place}")
    if config.problem is not None:
        return Check(name, ok=False, detail=config.problem, fix=f"Correct it in {config.place}.")
    if case.offline and isinstance(config.transport, HttpTransport):
        return Check(name, ok=True, detail="skipped: it is reached over a network (--offline)")
    try:
        with anyio.fail_after(SERVER_S):
            tools = await registry.list_tools(config.name)
    except ServerUnavailableError as error:
        return _unavailable(name, config, await _info(registry, config.name), str(error))
    except TimeoutError:
        fix = f"punie servers check {config.name} waits longer; see what holds it up: {config.line}"
        return Check(name, ok=False, detail=f"it did not answer within {SERVER_S:g} seconds", fix=fix)
    return Check(name, ok=True, detail=f"{len(tools)} tools")


async def _info(registry: ServerRegistry, name: str) -> ServerInfo | None:
    return next((info for info in await registry.list_servers() if info.name == name), None)


def _unavailable(name: str, config: ServerConfig, info: ServerInfo | None, said: str) -> Check:
    if info is not None and info.status is ServerStatus.NEEDS_APPROVAL:
        detail = f"skipped: the project brings it ({config.place}), and nobody approved it"
        return Check(name, ok=True, detail=f"{detail}; punie servers approve {config.name} shows what it would run")
    detail = said if info is None or not info.message else info.message
    reached = isinstance(config.transport, HttpTransport)
    fix = f"See that it runs and can be reached: {config.line}" if reached else f"Run it by hand and see: {config.line}"
    return Check(name, ok=False, detail=detail, fix=fix)
