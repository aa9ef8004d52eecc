"""Tools that are registered by their class."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from punie.application.tools.session_tool import CallContext, PreparedCall, Services, SessionTool
from punie.domain.tools.tool import ToolDescriptor
from punie.domain.values.json_value import JsonObject


class TypedTool(SessionTool):
    """A tool that is registered by its class: a subclass has a `DESCRIPTOR` and a `prepare`.

    One object is made for each session, when the tool is first used, from the session's services and a configuration.
    """

    DESCRIPTOR: ClassVar[ToolDescriptor]

    def __init__(self, services: Services, **configuration: object) -> None:
        self.services = services
        self.configuration = configuration

    @property
    def descriptor(self) -> ToolDescriptor:
        return self.DESCRIPTOR

    def title(self, arguments: JsonObject) -> str:
        return self.DESCRIPTOR.title or self.DESCRIPTOR.name

    @abstractmethod
    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall: ...
