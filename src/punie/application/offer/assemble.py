"""Makes the tools of a plan from the ports of the side that serves them: this machine, the client or another party."""

from __future__ import annotations

import logging

from attrs import field, frozen

from punie.application.tools.files.file_memory import FileMemory, KeptOutputs, ServedFiles
from punie.application.tools.own_tools import PLANNED, as_ours
from punie.application.tools.session_tool import CallContext, PreparedCall, Services, SessionTool
from punie.application.tools.terminals.terminal_tool import TerminalLedger
from punie.domain.permission.grants import takes_command
from punie.domain.tools.catalog import BuiltIn, Server, ToolPlan
from punie.domain.tools.schema import text_argument
from punie.domain.tools.tool import ToolCall, ToolDescriptor, ToolResult
from punie.domain.values.display import one_line
from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, freeze_object
from punie.domain.values.terminal import Command
from punie.ports.people import Peer
from punie.ports.tools import CallProgress, ToolExecutor
from punie.ports.workspace import Workspace


@frozen
class BridgedTool(SessionTool):
    """A tool that the client, an MCP server or a plug-in serves; lives as long as the session offers it.

    A tool with the name of one of ours is titled and judged like ours. Every call is logged. `sent_along` are arguments
    that are added to each call that does not give them itself.
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
        # An argument whose role is not known may change the command.
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
class AssembleTools:
    """Binds plans to one session's ports; lives as long as the session.

    `local` are the services of this machine: files, terminals, repository, shell and checks. `client_ledger` is None
    where the client has no terminals; the plan then names none of its terminal tools. `reads_disk` is False where this
    machine serves nothing (`tools.local` is `never`), so that not even the old text of a diff is read from its disk.
    """

    session_id: str
    peer: Peer
    local: Services
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
        workspace = self.peer.workspace if by_client else None
        ledger = self.client_ledger if by_client else None
        files = ServedFiles(
            workspace or self.local.get(Workspace),
            self._before(by_client=by_client),
            self.memory,
            decoded_elsewhere=workspace is not None,
            kept=self.kept,
        )
        ledger = ledger or self.local.get(TerminalLedger)
        return PLANNED[tool.name].from_services(self.local.beside({ServedFiles: files, TerminalLedger: ledger}))

    def _before(self, *, by_client: bool) -> Workspace | None:
        """The reader of the old text of a write: the client where it reads, else this machine's disk."""
        if by_client and self.peer.capabilities.read_text_file:
            return self.peer.workspace
        return self.local.get(Workspace) if self.reads_disk else None
