"""Six deliberately faulty servers beside a healthy one (issue 5, shows): each is told of, and no other notices."""

from __future__ import annotations

import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from punie.adapters.local.clock import LocalClock
from punie.adapters.mcp.servers import McpServers
from punie.domain.json_value import freeze_object
from punie.domain.servers import ServerConfig, StdioTransport
from punie.ports.tool_server import ServerUnavailableError
from tests.contract.server_benches import program
from tests.fakes.mcp_servers import faulty_server
from tests.fakes.progress import FakeProgress

pytestmark = pytest.mark.anyio


@pytest.fixture
async def servers(anyio_backend: object) -> AsyncIterator[McpServers]:
    with anyio.fail_after(50):
        async with McpServers(LocalClock()) as made:
            yield made


def faulty(fault: str, bound_s: float) -> ServerConfig:
    transport = StdioTransport(sys.executable, (str(Path(faulty_server.__file__)), fault))
    return ServerConfig(fault, transport, startup_s=bound_s, call_s=bound_s)


@pytest.mark.requirement("S4-34", "S4-43")
async def test_beside_six_faulty_servers_a_healthy_one_answers_as_always(servers: McpServers) -> None:
    healthy = servers.open(ServerConfig("healthy", program()))
    await healthy.list_tools()
    said: dict[str, str] = {}

    async def ask(fault: str) -> None:
        with pytest.raises(ServerUnavailableError) as refused:
            await servers.open(faulty(fault, bound_s=1.5)).list_tools()
        said[fault] = str(refused.value)

    slowest_s = 0.0
    async with anyio.create_task_group() as tasks:
        for fault in faulty_server.FAULTS:
            tasks.start_soon(ask, fault)
        while len(said) < len(faulty_server.FAULTS):
            began_s = time.monotonic()
            result = await healthy.call("echo", freeze_object({"text": "still here"}), FakeProgress())
            slowest_s = max(slowest_s, time.monotonic() - began_s)
            assert result.text == "still here"
            await anyio.sleep(0.01)
    assert slowest_s < 1
    assert "out of order" in said["exit"]
    assert "did not answer within 1.5 s" in said["hang"]
    assert "did not list its tools within 1.5 s" in said["mute"]


@pytest.mark.skipif(sys.platform == "win32", reason="programs are not started there")
async def test_a_server_that_shouts_without_end_keeps_our_processor_free(servers: McpServers) -> None:
    """Stray lines are read slowly, and then it is the server that waits; read as they come they took all we had."""
    await servers.open(ServerConfig("healthy", program())).list_tools()  # loads the library
    loud = servers.open(faulty("shout", bound_s=1.0))
    used_s = time.process_time()
    with pytest.raises(ServerUnavailableError):
        await loud.list_tools()
    assert time.process_time() - used_s < 0.25
