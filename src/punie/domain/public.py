"""The public names of `punie.domain` (INTERFACES.md section 6)."""

from punie.domain.catalog import CatalogDelta, ToolCatalog
from punie.domain.content import Diff, EmbeddedResource, Image, Prompt, ResourceLink, TerminalView, Text
from punie.domain.discovery import CatalogAnswer, ClientCapabilities, DroppedEntry, Tier, plan_tools
from punie.domain.errors import EngineError, PunieError, ToldToModel, ToolFailedError, UnreadableSnapshotError
from punie.domain.events import ContextUsed, TextDelta, ThoughtDelta, UsageChanged
from punie.domain.metadata import Capability, Permission, ToolExample, ToolMetadata
from punie.domain.permission import (
    Dismissed,
    OptionKind,
    PermissionOption,
    PermissionOutcome,
    PermissionQuestion,
    Selected,
    Unusable,
)
from punie.domain.schema import ToolParameter
from punie.domain.tool import ToolCall, ToolDescriptor, ToolKind, ToolOutcome, ToolResult, ToolSource
from punie.domain.transcript import AgentSaid, PersonSaid, ToolUsed, Transcript, TurnsLeftOut, TurnStoppedShort
from punie.domain.turn import EngineErrorKind, StopReason, Turn
from punie.domain.usage import Usage

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
