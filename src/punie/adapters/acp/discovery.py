"""The discovery extension: the catalogue of the IDE's tools, and the bridge that calls them.

`docs/interfaces.md` lists the methods, which are used only where the client advertised the extension.
"""

from __future__ import annotations

import json
import logging

import msgspec
from attrs import define, evolve, field, frozen
from msgspec import Raw

from punie.adapters.acp.blocks import BlockError, decode_block, present
from punie.adapters.acp.handshake import decode, is_true
from punie.adapters.acp.tool_entries import decode_entry
from punie.adapters.acp.wire import CallAnswer, DiscoverAnswer
from punie.domain.tools.catalog import CatalogAnswer, DroppedEntry, ToolCatalog
from punie.domain.tools.tool import ToolCall, ToolDescriptor, ToolOutcome, ToolResult
from punie.domain.values.content import Block
from punie.domain.values.display import one_line
from punie.domain.values.json_value import NotJsonError, thaw
from punie.mechanics.jsonrpc.connection import Connection
from punie.mechanics.jsonrpc.errors import ConnectionClosed, RpcError
from punie.ports.tools import CallProgress, ToolExecutor, ToolProvider, ToolSourceError

DISCOVER = "_punie.dev/discover_tools"
CALL = "_punie.dev/call_tool"
TOOLS_CHANGED = "_punie.dev/tools_changed"

MAX_PAGES = 100
MAX_TOOLS = 2_000


@define
class _Reading:
    """The catalogue while its pages arrive."""

    tools: dict[str, ToolDescriptor] = field(factory=dict)
    dropped: list[DroppedEntry] = field(factory=list)
    entries: int = 0

    def take(self, page: DiscoverAnswer) -> bool:
        """Add a page; False where `MAX_TOOLS` was reached."""
        for raw in page.tools:
            if self.entries >= MAX_TOOLS:
                return False
            entry = decode_entry(raw, self.entries)
            self.entries += 1
            if isinstance(entry, DroppedEntry):
                self.dropped.append(entry)
            elif entry.name in self.tools:
                self.dropped.append(DroppedEntry(entry.name, "an earlier entry has the same name"))
            else:
                self.tools[entry.name] = entry
        return True


@frozen
class AcpToolCatalog(ToolProvider):
    """The client's own tools; bound to one session, lives as long as it."""

    connection: Connection
    session_id: str
    cwd: str
    log: logging.Logger

    async def discover_tools(self) -> CatalogAnswer:
        reading, pages = _Reading(), 1
        page = await self._page(None)
        while (whole := reading.take(page)) and page.next_cursor is not None and pages < MAX_PAGES:
            page = await self._page(page.next_cursor)
            pages += 1
        if not whole or page.next_cursor is not None:
            self.log.warning(
                "session %s: the catalogue goes on after %d entries or %d pages; what was read stands",
                self.session_id, reading.entries, MAX_PAGES,
            )  # fmt: skip
        return CatalogAnswer(ToolCatalog(reading.tools.values()), tuple(reading.dropped), is_true(page.extends))

    async def _page(self, cursor: str | None) -> DiscoverAnswer:
        params = {"sessionId": self.session_id, "cwd": self.cwd, **present(cursor=cursor)}
        try:
            return decode(await self.connection.request(DISCOVER, params), DiscoverAnswer)
        except RpcError as error:
            raise ToolSourceError(f"the client answered with error {error.code}") from error
        except ConnectionClosed as error:
            raise ToolSourceError("the client closed the connection") from error
        except msgspec.DecodeError as error:
            raise ToolSourceError(f"the client's answer cannot be read ({error})") from error


@frozen
class AcpToolBridge(ToolExecutor):
    """Carries calls to the client and results back; bound to one session, lives as long as it."""

    connection: Connection
    session_id: str

    async def execute(self, call: ToolCall, progress: CallProgress) -> ToolResult:
        params = {
            "sessionId": self.session_id,
            "toolCallId": call.id,
            "name": call.name,
            "arguments": thaw(call.arguments),
        }
        try:
            return _result(call.name, await self.connection.request(CALL, params))
        except RpcError as error:
            return ToolResult.failure(f"The IDE answered {call.name} with an error: {one_line(error.message, 2000)}")
        except ConnectionClosed:
            return ToolResult.failure(f"The IDE closed the connection before {call.name} was done.")


def _result(name: str, raw: Raw) -> ToolResult:
    try:
        answer = decode(raw, CallAnswer)
        content = tuple(decode_block(item) for item in answer.content)
        return _tool_result(content, msgspec.json.decode(answer.structured_content), failed=answer.is_error is True)
    except (msgspec.DecodeError, BlockError, NotJsonError, RecursionError) as error:
        return ToolResult.failure(
            f"The IDE's result of {name} is not of the agreed shape, so it is lost ({one_line(str(error), 300)}). "
            "The tool may have run; look before you call it again.",
            code="bad_result",
        )


def _tool_result(content: tuple[Block, ...], structured: object, *, failed: bool) -> ToolResult:
    outcome, code = (ToolOutcome.FAILED, "tool_failed") if failed else (ToolOutcome.SUCCEEDED, None)
    result = ToolResult(outcome, content, structured=structured, code=code)
    if result.text or structured is None:
        return result
    return evolve(result, for_model=json.dumps(structured, ensure_ascii=False))
