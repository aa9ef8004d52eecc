"""The requests of an agent to the reference IDE: files, terminals, questions and tools (ACP, client methods)."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from attrs import define, field
from msgspec import DecodeError, Raw

from punie.api import (
    OUTPUT_LIMIT_BYTES,
    Command,
    ExitStatus,
    NotJsonError,
    Terminals,
    ToldToModel,
    UnknownTerminalError,
)
from punie.mechanics.jsonrpc.envelope import RequestId
from punie.mechanics.jsonrpc.errors import INTERNAL_ERROR, INVALID_PARAMS, METHOD_NOT_FOUND, RpcError
from punie.mechanics.jsonrpc.in_flight import Router
from punie_ide.events import ToolsListed, ToolUsed
from punie_ide.session import IdeSession
from punie_ide.tools import IdeTool, ToolAnswer, ToolContext, ToolShelf
from punie_ide.wire import (
    CallParams,
    CreateParams,
    DiscoverParams,
    ReadParams,
    TerminalParams,
    UpdateParams,
    WriteParams,
    decode,
    decode_question,
    decode_update,
)

RESOURCE_NOT_FOUND = -32002
DISCOVER = "_punie.dev/discover_tools"
CALL = "_punie.dev/call_tool"
PREVIEW = "_punie.dev/preview_tool"
CHANGED = "_punie.dev/tools_changed"

T = TypeVar("T")
Handler = Callable[[Raw], Awaitable[object]]


@define(eq=False)
class IdeRouter(Router):
    """Serves the messages of an agent; lives as long as the connection.

    `find` gives the session of an id, or None. Methods of capabilities that the IDE does not have are answered with
    `method not found`, as by a client that never advertised them.
    """

    find: Callable[[str], IdeSession | None]
    log: logging.Logger
    shelf: ToolShelf | None = None
    files: bool = False
    programs: bool = False
    _handlers: Mapping[str, Handler] = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._handlers = {"session/request_permission": self._ask}
        if self.files:
            self._handlers |= {"fs/read_text_file": self._read, "fs/write_text_file": self._write}
        if self.programs:
            self._handlers |= {
                "terminal/create": self._create,
                "terminal/output": self._output,
                "terminal/wait_for_exit": self._wait,
                "terminal/kill": self._kill,
                "terminal/release": self._release,
            }
        if self.shelf is not None:
            self._handlers |= {DISCOVER: self._discover, CALL: self._call, PREVIEW: self._preview}

    # -- Router ----------------------------------------------------------------------------------------------------

    def request(self, method: str, params: Raw, request_id: RequestId) -> Awaitable[object]:
        """Begin to serve a request."""
        handler = self._handlers.get(method)
        if handler is None:
            raise RpcError(METHOD_NOT_FOUND, "this IDE has no such method")
        return handler(params)

    def notification(self, method: str, params: Raw) -> None:
        """Record an update; other notifications are ignored."""
        if method == "session/update":
            update = decode(params, UpdateParams)
            self._session(update.session_id).record(decode_update(update.update))

    def error(self, exc: BaseException) -> RpcError:
        """The error answer for an exception of a handler."""
        if isinstance(exc, RpcError):
            return exc
        if isinstance(exc, UnknownTerminalError):
            return RpcError(RESOURCE_NOT_FOUND, str(exc))
        if isinstance(exc, ToldToModel):
            return RpcError(INTERNAL_ERROR, str(exc))
        if isinstance(exc, (DecodeError, NotJsonError)):
            return RpcError(INVALID_PARAMS, f"the parameters cannot be used: {exc}")
        self.log.error("the IDE failed to serve a request", exc_info=exc)
        return RpcError(INTERNAL_ERROR, f"the IDE failed ({type(exc).__name__}); its log has the details")

    # -- questions and files ---------------------------------------------------------------------------------------

    async def _ask(self, raw: Raw) -> object:
        question = decode_question(raw)
        return await self._session(question.session_id).answer(question)

    async def _read(self, raw: Raw) -> object:
        params = decode(raw, ReadParams)
        workspace = _lent(self._session(params.session_id).workspace)
        text = await workspace.read_text(params.path, line_1based=params.line, limit_lines=params.limit)
        return {"content": text}

    async def _write(self, raw: Raw) -> object:
        params = decode(raw, WriteParams)
        workspace = _lent(self._session(params.session_id).workspace)
        await workspace.write_text(params.path, params.content)
        return {}

    # -- terminals -------------------------------------------------------------------------------------------------

    async def _create(self, raw: Raw) -> object:
        params = decode(raw, CreateParams)
        session = self._session(params.session_id)
        limit = OUTPUT_LIMIT_BYTES if params.output_byte_limit is None else params.output_byte_limit
        return {"terminalId": await _lent(session.terminals).create(_command(params, session.cwd, limit))}

    async def _output(self, raw: Raw) -> object:
        terminals, terminal_id = self._terminal(raw)
        output = await terminals.output(terminal_id)
        result: dict[str, Any] = {"output": output.text, "truncated": output.truncated}
        return result if output.exit is None else result | {"exitStatus": _status(output.exit)}

    async def _wait(self, raw: Raw) -> object:
        terminals, terminal_id = self._terminal(raw)
        return _status(await terminals.wait(terminal_id))

    async def _kill(self, raw: Raw) -> object:
        terminals, terminal_id = self._terminal(raw)
        await terminals.kill(terminal_id)
        return {}

    async def _release(self, raw: Raw) -> object:
        terminals, terminal_id = self._terminal(raw)
        await terminals.release(terminal_id)
        return {}

    def _terminal(self, raw: Raw) -> tuple[Terminals, str]:
        params = decode(raw, TerminalParams)
        return _lent(self._session(params.session_id).terminals), params.terminal_id

    # -- the IDE's own tools ---------------------------------------------------------------------------------------

    async def _discover(self, raw: Raw) -> object:
        params = decode(raw, DiscoverParams)
        try:
            page = _lent(self.shelf).page(params.cursor)
        except ValueError as error:
            raise RpcError(INVALID_PARAMS, str(error)) from None
        self._session(params.session_id).record(ToolsListed(tuple(entry["name"] for entry in page["tools"])))
        return page

    async def _call(self, raw: Raw) -> object:
        params = decode(raw, CallParams)
        session = self._session(params.session_id)
        tool, context = self._tool(params)
        try:
            answer = ToolAnswer.of(await tool.handler(params.arguments, context))
        except ToldToModel as refusal:
            answer = ToolAnswer(str(refusal), is_error=True)
        session.record(ToolUsed(params.tool_call_id, tool.name, params.arguments, answer.text, answer.is_error))
        return answer.encode()

    async def _preview(self, raw: Raw) -> object:
        params = decode(raw, CallParams)
        tool, context = self._tool(params)
        if tool.preview is None:
            raise RpcError(INVALID_PARAMS, f"{tool.name} has no preview")
        return (await tool.preview(params.arguments, context)).encode()

    def _tool(self, params: CallParams) -> tuple[IdeTool, ToolContext]:
        session = self._session(params.session_id)
        tool = _lent(self.shelf).get(params.name)
        if tool is None:
            raise RpcError(INVALID_PARAMS, f"this IDE has no tool named {params.name!r}")
        workspace, terminals = session.workspace, session.tools_terminals
        return tool, ToolContext(session.id, params.tool_call_id, session.cwd, workspace, terminals)

    def _session(self, session_id: str) -> IdeSession:
        if (session := self.find(session_id)) is None:
            raise RpcError(RESOURCE_NOT_FOUND, "this IDE has no such session")
        return session


def _lent(port: T | None) -> T:
    """A port that the IDE was opened with; without it, its methods are not even known (`IdeRouter`)."""
    if port is None:
        raise RpcError(METHOD_NOT_FOUND, "this IDE has no such method")
    return port


def _command(params: CreateParams, cwd: str, limit: int) -> Command:
    """The program to run. Variables go through `env`, for a `Command` has none."""
    words = [params.command, *(params.args or [])]
    if params.env:
        words = ["/usr/bin/env", *(f"{variable.name}={variable.value}" for variable in params.env), *words]
    shown = Command.of(params.command, tuple(params.args or ()), params.cwd or cwd)
    is_line = params.command == "/bin/sh" and len(shown.args) == 2 and shown.args[0] == "-c"
    return Command(words[0], tuple(words[1:]), shown.cwd, shown.args[1] if is_line else shown.line, limit)


def _status(status: ExitStatus) -> dict[str, Any]:
    return {"exitCode": status.exit_code, "signal": status.signal}
