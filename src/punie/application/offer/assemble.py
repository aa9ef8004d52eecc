"""From a plan to tools: each is made of the ports of whoever serves it, on this machine, in the client or elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import cast

from attrs import field, frozen

from punie.application.tools.files.file_memory import FileMemory, KeptOutputs, ServedFiles
from punie.application.tools.own_tools import PLANNED, as_ours
from punie.application.tools.session_tool import CallContext, PreparedCall, Service, Services, SessionTool
from punie.application.tools.terminals.get_shell_info import ShellInfo
from punie.application.tools.terminals.terminal_tool import TerminalLedger
from punie.domain.permission.grants import takes_command
from punie.domain.tools.arguments import text_argument
from punie.domain.tools.discovery import BuiltIn, Server, ToolPlan
from punie.domain.tools.tool import ToolCall, ToolDescriptor, ToolResult
from punie.domain.values.display import one_line
from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, freeze_object
from punie.domain.values.terminal import Command
from punie.ports.people import Peer
from punie.ports.tools import CallProgress, PythonChecks, ToolExecutor
from punie.ports.workspace import FileTree, Repository, Workspace


@frozen
class BridgedTool(SessionTool):
    """Hands a call on, and leaves a line in the log each time; bound to one session.

    A tool with the name of one of ours is titled and judged like ours. `sent_along` are arguments that each call
    carries that does not give them itself.
    """

    tool: ToolDescriptor = field(converter=as_ours)
    executor: ToolExecutor
    session_id: str
    log: logging.Logger
    sent_along: JsonObject = field(default=EMPTY_OBJECT, converter=freeze_object)

    @property
    def descriptor(self) -> ToolDescriptor:
        return self.tool

    def title(self, arguments: JsonObject) -> str:
        own = PLANNED.get(self.tool.name)
        title = ("" if own is None else own.titled(arguments)) or one_line(self.tool.title or self.tool.name)
        if not takes_command(self.tool):
            return title
        return one_line(f"{title}: {text_argument(arguments, 'command')}", limit=400)

    def denial(self, arguments: JsonObject) -> str:
        own = PLANNED.get(self.tool.name)
        return super().denial(arguments) if own is None else own.denied(arguments)

    def command(self, arguments: JsonObject, context: CallContext) -> Command | None:
        # A word whose meaning is not known may change the command.
        return super().command(arguments, context) if self.tool.roles.know(arguments) else None

    def sent(self, arguments: JsonObject) -> JsonObject:
        missing = {name: value for name, value in self.sent_along.items() if name not in arguments}
        return freeze_object({**arguments, **missing}) if missing else arguments

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        call = ToolCall(context.call_id, self.tool.name, self.sent(arguments))

        async def effect(progress: CallProgress) -> ToolResult:
            self.log.info("session %s: calling %s of the %s", self.session_id, self.tool.name, self.tool.source.value)
            return await self.executor.execute(call, progress)

        return PreparedCall(effect)


@frozen
class LocalServices(Services):
    """What this machine can serve in one session, also to the factories of tools; lives as long as the session."""

    workspace: Workspace
    ledger: TerminalLedger
    tree: FileTree
    repository: Repository
    shell: ShellInfo
    checks: PythonChecks

    def get(self, kind: type[Service]) -> Service:
        known: Mapping[object, object] = {
            Workspace: self.workspace,
            TerminalLedger: self.ledger,
            FileTree: self.tree,
            Repository: self.repository,
            ShellInfo: self.shell,
            PythonChecks: self.checks,
        }
        if kind not in known:
            raise LookupError(f"this session has no {kind.__name__}")
        return cast("Service", known[kind])


@frozen
class AssembleTools:
    """Binds plans to one session's ports; lives as long as the session.

    `client_ledger` is None where the client has no terminals; the plan then names none of its terminal tools.
    `reads_disk` is False where this machine serves nothing (`tools.local` is `never`): not even the old text of a diff.
    """

    session_id: str
    peer: Peer
    local: LocalServices
    client_ledger: TerminalLedger | None
    log: logging.Logger
    memory: FileMemory = field(factory=FileMemory, kw_only=True)
    kept: KeptOutputs | None = None
    reads_disk: bool = True

    def __call__(self, plan: ToolPlan) -> tuple[SessionTool, ...]:
        """The session's tools in the plan's order."""
        bridged = () if self.peer.bridge is None else tuple(
            BridgedTool(tool, self.peer.bridge, self.session_id, self.log) for tool in plan.catalog
        )  # fmt: skip
        return (*bridged, *(self._built_in(tool) for tool in plan.built_ins))

    def _built_in(self, tool: BuiltIn) -> SessionTool:
        by_client = tool.server is Server.CLIENT
        workspace = self.peer.workspace if by_client and self.peer.workspace is not None else self.local.workspace
        ledger = self.client_ledger if by_client and self.client_ledger is not None else self.local.ledger
        before, elsewhere = self._before(by_client=by_client), workspace is self.peer.workspace
        files = ServedFiles(workspace, before, self.memory, elsewhere, self.kept)
        return PLANNED[tool.name].from_services(_Served(self.local, files, ledger))

    def _before(self, *, by_client: bool) -> Workspace | None:
        """Whom a write asks for the old text: the client where it reads, else this machine's disk."""
        if by_client and self.peer.capabilities.read_text_file:
            return self.peer.workspace
        return self.local.workspace if self.reads_disk else None


@frozen
class _Served(Services):
    """A session's services as one server of a tool gives them: its files and terminals, else those of this machine."""

    local: LocalServices
    files: ServedFiles
    ledger: TerminalLedger

    def get(self, kind: type[Service]) -> Service:
        own: Mapping[object, object] = {ServedFiles: self.files, TerminalLedger: self.ledger}
        return cast("Service", own[kind]) if kind in own else self.local.get(kind)
