"""Makes the tools of a plan from the ports of the side that serves them: this machine, the client or another party."""

from __future__ import annotations

import logging

from attrs import field, frozen

from punie.application.tools.built_in import COMMAND_TITLE_CHARS
from punie.application.tools.files.file_memory import FileMemory, KeptOutputs, ServedFiles, text_or_none
from punie.application.tools.own_tools import PLANNED, as_ours
from punie.application.tools.python.edit_check import EditCheck
from punie.application.tools.session_tool import CallContext, PreparedCall, Services, SessionTool
from punie.application.tools.terminals.terminal_tool import TerminalLedger
from punie.domain.tools.catalog import BuiltIn, Server, ToolPlan
from punie.domain.tools.foreign_roles import named_roles
from punie.domain.tools.roles import Change, Role
from punie.domain.tools.tool import ToolCall, ToolDescriptor, ToolResult
from punie.domain.values.content import Diff
from punie.domain.values.display import one_line
from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject, freeze_object
from punie.domain.values.terminal import Command
from punie.ports.people import Peer
from punie.ports.tools import CallProgress, ToolExecutor
from punie.ports.workspace import Disk, Workspace
from shellsight.arguments.profiles import Profile


@frozen
class BridgedTool(SessionTool):
    """A tool that the client, an MCP server or a plug-in serves; lives as long as the session offers it.

    A tool with the name of one of ours is titled and judged like ours, any other by the roles of its parameters. Every
    call is logged. `sent_along` are arguments that are added to each call that does not give them itself. `reader`
    reads the old text for the diff of a question; None where there is none.
    """

    tool: ToolDescriptor = field(converter=as_ours)
    executor: ToolExecutor
    session_id: str
    log: logging.Logger
    sent_along: JsonObject = field(default=EMPTY_OBJECT, converter=freeze_object)
    reader: Workspace | None = None

    @property
    def descriptor(self) -> ToolDescriptor:
        return self.tool

    def title(self, arguments: JsonObject) -> str:
        own = PLANNED.get(self.tool.name)
        title = ("" if own is None else own.titled(arguments)) or one_line(self.tool.title or self.tool.name)
        if own is not None or not self.tool.roles.runs(arguments):
            return title
        return one_line(f"{title}: {self.tool.roles.command_line(arguments)}", COMMAND_TITLE_CHARS)

    def denial(self, arguments: JsonObject) -> str:
        own = PLANNED.get(self.tool.name)
        return super().denial(arguments) if own is None else own.denied(arguments)

    def paths(self, arguments: JsonObject) -> tuple[str, ...]:
        return self.tool.roles.paths(arguments, self._base)

    def command(self, arguments: JsonObject, context: CallContext) -> Command | None:
        roles = self.tool.roles
        if not roles.runs(arguments) or not roles.reads_command(arguments):
            return None
        located = tuple(where.path for where in context.locations)
        found = roles.command(arguments, located, self._base or context.cwd)
        return None if found is None else Command.of(*found)

    def sent(self, arguments: JsonObject) -> JsonObject:
        missing = {name: value for name, value in self.sent_along.items() if name not in arguments}
        return freeze_object({**arguments, **missing}) if missing else arguments

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        call = ToolCall(context.call_id, self.tool.name, self.sent(arguments))

        async def effect(progress: CallProgress) -> ToolResult:
            self.log.info("session %s: calling %s of the %s", self.session_id, self.tool.name, self.tool.source.value)
            return await self.executor.execute(call, progress)

        return PreparedCall(effect, await self._diffs(arguments, context))

    @property
    def _base(self) -> str:
        """The directory from which the other side takes relative paths; empty where it is the session's."""
        return self.tool.roles.text(Role.CWD, self.sent_along) or ""

    async def _diffs(self, arguments: JsonObject, context: CallContext) -> tuple[Diff, ...]:
        """The change that the call proposes, as far as its roles tell it. Only the session's own files are read."""
        roles, change = self.tool.roles, self.tool.roles.change(arguments)
        named = zip(roles.located(arguments), context.locations, strict=False)
        files = [where for (_, role, _), where in named if role in _CHANGED]
        if change == Change() or self.reader is None or len(files) != 1 or not files[0].inside or files[0].secret:
            return ()
        old = await text_or_none(self.reader, files[0].path)
        new = change.applied(old)
        return () if new is None else (Diff(files[0].path, old, new),)


_CHANGED = frozenset({Role.PATH_WRITE, Role.PATH_CREATE})


@frozen
class OtherParties:
    """Makes the tools of other parties for a session and lives as long as it.

    `profiles` are the roles of well-known tools. `reader` reads the old text for the diffs of questions.
    """

    profiles: tuple[Profile, ...] = ()
    reader: Workspace | None = None

    def known(self, tool: ToolDescriptor) -> ToolDescriptor:
        """The tool with the roles of its parameters."""
        return as_ours(tool, named_roles(tool, self.profiles))


@frozen
class AssembleTools:
    """Binds plans to one session's ports; lives as long as the session.

    `local` are the services of this machine: files, terminals, repository, shell and checks. `client_ledger` is None
    where the client has no terminals; the plan then names none of its terminal tools. `reads_disk` is False where this
    machine serves nothing (`tools.local` is `never`), so that not even the old text of a diff is read from its disk.
    `edit_check` tells what an edit does to the linter's findings; None where that is switched off.
    """

    session_id: str
    peer: Peer
    local: Services
    client_ledger: TerminalLedger | None
    log: logging.Logger
    memory: FileMemory = field(factory=FileMemory, kw_only=True)
    kept: KeptOutputs | None = None
    reads_disk: bool = True
    edit_check: EditCheck | None = None
    others: OtherParties = field(factory=OtherParties, kw_only=True)

    def __call__(self, plan: ToolPlan) -> tuple[SessionTool, ...]:
        """The session's tools in the plan's order."""
        others = self.others
        bridged = () if self.peer.bridge is None else tuple(
            BridgedTool(others.known(tool), self.peer.bridge, self.session_id, self.log, reader=others.reader)
            for tool in plan.catalog
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
            check=self.edit_check,
            disk=self.local.get(Disk) if self.reads_disk and Disk in self.local.by_type else None,
        )
        ledger = ledger or self.local.get(TerminalLedger)
        return PLANNED[tool.name].from_services(self.local.beside({ServedFiles: files, TerminalLedger: ledger}))

    def _before(self, *, by_client: bool) -> Workspace | None:
        """The reader of the old text of a write: the client where it reads, else this machine's disk."""
        if by_client and self.peer.capabilities.read_text_file:
            return self.peer.workspace
        return self.local.get(Workspace) if self.reads_disk else None
