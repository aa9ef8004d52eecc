"""read_file on results that were too long for the model: they lie outside the project, in the session's own folder."""

from __future__ import annotations

from attrs import frozen

from punie.application.session_tool import CallContext, PreparedCall, SessionTool
from punie.domain.json_value import JsonObject
from punie.domain.tool import ToolDescriptor
from punie.ports.output_store import OutputStore


@frozen
class ReadFileOrOutput(SessionTool):
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

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        ours = bool(context.locations) and all(self.store.holds(where.path) for where in context.locations)
        return await (self.kept if ours else self.files).prepare(arguments, context)
