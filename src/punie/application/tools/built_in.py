"""What every built-in tool shares: its wording by name, and a schema of a few properties."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

from attrs import evolve

from punie.application.tools.details import DETAILS
from punie.application.tools.session_tool import CallContext, PreparedCall, SessionTool
from punie.application.tools.wording import denial_of, paths_of, title_of
from punie.domain.tools.metadata import ToolMetadata
from punie.domain.tools.tool import ToolDescriptor
from punie.domain.values.json_value import JsonObject

NOTHING_SAID = ToolMetadata()
STRING: Mapping[str, object] = {"type": "string"}
BOOLEAN: Mapping[str, object] = {"type": "boolean"}


def schema(required: Mapping[str, object], optional: Mapping[str, object] | None = None) -> dict[str, object]:
    """An object schema: the required properties, then the optional ones; `required` is absent when empty."""
    built: dict[str, object] = {"type": "object", "properties": {**required, **(optional or {})}}
    if required:
        built["required"] = list(required)
    return built


def optional(kind: str, description: str | None = None, **more: object) -> dict[str, object]:
    """A property that may be left out or null, as some models write it."""
    built: dict[str, object] = {"type": [kind, "null"], **more}
    if description is not None:
        built["description"] = description
    return built


class BuiltInTool(SessionTool):
    """A tool of ours: subclasses give `descriptor` and `prepare`."""

    DESCRIPTOR: ToolDescriptor

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        said = cls.__dict__.get("DESCRIPTOR")
        if isinstance(said, ToolDescriptor) and said.details == NOTHING_SAID:
            cls.DESCRIPTOR = evolve(said, details=DETAILS.get(said.name, NOTHING_SAID))

    @property
    def descriptor(self) -> ToolDescriptor:
        return self.DESCRIPTOR

    def title(self, arguments: JsonObject) -> str:
        return title_of(self.DESCRIPTOR.name, arguments) or self.DESCRIPTOR.name

    def denial(self, arguments: JsonObject) -> str:
        return denial_of(self.DESCRIPTOR.name, arguments)

    def paths(self, arguments: JsonObject) -> tuple[str, ...]:
        return paths_of(self.DESCRIPTOR.name, arguments)

    @abstractmethod
    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall: ...
