"""read_file on results that were too long for the model: they lie outside the project, in the session's own folder."""

from __future__ import annotations

from attrs import frozen

from punie.application.tools.session_tool import CallContext, KnowsFiles, PreparedCall, SessionTool
from punie.domain.tools.tool import ToolDescriptor
from punie.domain.values.json_value import JsonObject
from punie.ports.workspace import OutputStore


@frozen
class ReadFileOrOutput(SessionTool, KnowsFiles):
    """read_file of the session, which also reads what `store` holds; there `kept` reads, on this machine's disk."""

    files: SessionTool
    kept: SessionTool
    store: OutputStore

    @property
    def descriptor(self) -> ToolDescriptor:
        return self.files.descriptor

    def title(self, arguments: JsonObject) -> str:
        return self.files.title(arguments)

    def denial(self, arguments: JsonObject) -> str:
        return self.files.denial(arguments)

    def paths(self, arguments: JsonObject) -> tuple[str, ...]:
        return self.files.paths(arguments)

    def file_bytes(self, arguments: JsonObject, context: CallContext) -> int | None:
        served = self._server(context)
        return served.file_bytes(arguments, context) if isinstance(served, KnowsFiles) else None

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        return await self._server(context).prepare(arguments, context)

    def _server(self, context: CallContext) -> SessionTool:
        ours = bool(context.locations) and all(self.store.holds(where.path) for where in context.locations)
        return self.kept if ours else self.files
