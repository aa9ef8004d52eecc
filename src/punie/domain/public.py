"""The public names of `punie.domain` (INTERFACES.md section 6)."""

from punie.domain.errors import (
    EngineError,
    EngineErrorKind,
    PunieError,
    ToldToModel,
    ToolFailedError,
    UnreadableSnapshotError,
)
from punie.domain.model.usage import Usage
from punie.domain.permission.flow import (
    Dismissed,
    OptionKind,
    PermissionOption,
    PermissionOutcome,
    PermissionQuestion,
    Selected,
    Unusable,
)
from punie.domain.session.events import ContextUsed, TextDelta, ThoughtDelta, UsageChanged
from punie.domain.session.transcript import AgentSaid, PersonSaid, ToolUsed, Transcript, TurnsLeftOut, TurnStoppedShort
from punie.domain.session.turn import StopReason, Turn
from punie.domain.tools.catalog import CatalogDelta, ToolCatalog
from punie.domain.tools.discovery import CatalogAnswer, ClientCapabilities, DroppedEntry, Tier, plan_tools
from punie.domain.tools.metadata import Capability, Permission, ToolExample, ToolMetadata
from punie.domain.tools.schema import ToolParameter
from punie.domain.tools.tool import ToolCall, ToolDescriptor, ToolKind, ToolOutcome, ToolResult, ToolSource
from punie.domain.values.content import Diff, EmbeddedResource, Image, Prompt, ResourceLink, TerminalView, Text

__all__ = [
    "AgentSaid",
    "Capability",
    "CatalogAnswer",
    "CatalogDelta",
    "ClientCapabilities",
    "ContextUsed",
    "Diff",
    "Dismissed",
    "DroppedEntry",
    "EmbeddedResource",
    "EngineError",
    "EngineErrorKind",
    "Image",
    "OptionKind",
    "Permission",
    "PermissionOption",
    "PermissionOutcome",
    "PermissionQuestion",
    "PersonSaid",
    "Prompt",
    "PunieError",
    "ResourceLink",
    "Selected",
    "StopReason",
    "TerminalView",
    "Text",
    "TextDelta",
    "ThoughtDelta",
    "Tier",
    "ToldToModel",
    "ToolCall",
    "ToolCatalog",
    "ToolDescriptor",
    "ToolExample",
    "ToolFailedError",
    "ToolKind",
    "ToolMetadata",
    "ToolOutcome",
    "ToolParameter",
    "ToolResult",
    "ToolSource",
    "ToolUsed",
    "Transcript",
    "Turn",
    "TurnStoppedShort",
    "TurnsLeftOut",
    "UnreadableSnapshotError",
    "Unusable",
    "Usage",
    "UsageChanged",
    "plan_tools",
]
