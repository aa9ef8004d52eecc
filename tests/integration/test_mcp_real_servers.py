"""The public servers that others wrote, where they are installed (issue 5, shows).

`PUNIE_TEST_SERVERS` names a folder with `bin/` (PyPI: mcp-server-git, mcp-server-time, mcp-server-fetch) or
`node_modules/` (npm: @modelcontextprotocol/server-everything, server-filesystem), or both.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest

from punie.adapters.local.clock import LocalClock
from punie.adapters.mcp.servers import McpServers
from punie.adapters.schema.argument_validator import JsonSchemaRsValidator
from punie.domain.content import EmbeddedResource, Image, ResourceLink
from punie.domain.json_value import freeze_object
from punie.domain.servers import ServerConfig, StdioTransport
from punie.domain.tool import ToolResult
from tests.fakes.progress import FakeProgress

pytestmark = pytest.mark.anyio


def real(name: str, *args: str) -> ServerConfig:
    """The installed server of that name; skips the test where there is none."""
    for folder in map(Path, filter(None, os.environ.get("PUNIE_TEST_SERVERS", "").split(os.pathsep))):
        script = folder / "node_modules" / "@modelcontextprotocol" / name / "dist" / "index.js"
        node = shutil.which("node")
        if node is not None and script.exists():
            return ServerConfig(name, StdioTransport(node, (str(script), *args)))
        if (folder / "bin" / name).exists():
            return ServerConfig(name, StdioTransport(str(folder / "bin" / name), args))
    pytest.skip(f"{name} is not installed; see PUNIE_TEST_SERVERS")


@pytest.fixture
async def servers(anyio_backend: object) -> AsyncIterator[McpServers]:
    with anyio.fail_after(50):
        async with McpServers(LocalClock(), JsonSchemaRsValidator()) as made:
            yield made


async def call(servers: McpServers, config: ServerConfig, tool: str, **arguments: object) -> ToolResult:
    return await servers.open(config).call(tool, freeze_object(arguments), FakeProgress())


@pytest.mark.parametrize(
    ("name", "args", "tool"),
    [
        ("mcp-server-git", (), "git_status"),
        ("mcp-server-time", (), "get_current_time"),
        ("mcp-server-fetch", (), "fetch"),
        ("server-everything", ("stdio",), "echo"),
        ("server-filesystem", (os.sep,), "read_text_file"),
    ],
)
async def test_every_tool_is_listed_with_a_schema(
    servers: McpServers, name: str, args: tuple[str, ...], tool: str
) -> None:
    listing = await servers.open(real(name, *args)).list_tools()
    assert listing.dropped == ()
    assert tool in {each.name for each in listing.tools}
    assert all(each.description and each.input_schema.get("type") == "object" for each in listing.tools)


async def test_a_file_is_read_with_its_structure(servers: McpServers, tmp_path: Path) -> None:
    (tmp_path / "note.txt").write_text("of the test", encoding="utf-8")
    config = real("server-filesystem", str(tmp_path))
    assert (await servers.open(config).list_tools()).tools
    result = await call(servers, config, "read_text_file", path=str(tmp_path / "note.txt"))
    assert (result.text, result.structured) == ("of the test", {"content": "of the test"})
    outside = await call(servers, config, "read_text_file", path="/etc/hostname")
    assert not outside.succeeded


async def test_the_time_is_told(servers: McpServers) -> None:
    result = await call(servers, real("mcp-server-time"), "get_current_time", timezone="UTC")
    assert result.succeeded
    assert '"timezone": "UTC"' in result.text


async def test_a_long_operation_shows_its_steps(servers: McpServers) -> None:
    progress = FakeProgress()
    server = servers.open(real("server-everything", "stdio"))
    arguments = freeze_object({"duration": 0.4, "steps": 4})
    assert (await server.call("trigger-long-running-operation", arguments, progress)).succeeded
    assert [fraction for _, fraction in progress.reported] == [0.25, 0.5, 0.75, 1.0]


async def test_pictures_links_and_resources_arrive(servers: McpServers) -> None:
    config = real("server-everything", "stdio")
    picture = await call(servers, config, "get-tiny-image")
    assert any(isinstance(each, Image) for each in picture.content)
    links = await call(servers, config, "get-resource-links", count=2)
    assert sum(isinstance(each, ResourceLink) for each in links.content) == 2
    held = await call(servers, config, "get-resource-reference", resourceType="Text", resourceId=1)
    assert any(isinstance(each, EmbeddedResource) and each.text for each in held.content)


async def test_a_tool_that_is_not_there_is_a_failed_result(servers: McpServers) -> None:
    assert not (await call(servers, real("server-everything", "stdio"), "nope")).succeeded
    assert not (await call(servers, real("mcp-server-time"), "nope")).succeeded
