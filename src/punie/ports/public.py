"""The public names of `punie.ports` (INTERFACES.md section 6)."""

from punie.ports.agent import Agent
from punie.ports.engine import Engine, EngineSession, ToolDoor
from punie.ports.event_sink import EventSink
from punie.ports.permission_broker import PermissionBroker
from punie.ports.tool_executor import CallProgress, ToolExecutor
from punie.ports.tool_provider import ToolProvider, ToolSourceError

__all__ = [
    "Agent",
    "CallProgress",
    "Engine",
    "EngineSession",
    "EventSink",
    "PermissionBroker",
    "ToolDoor",
    "ToolExecutor",
    "ToolProvider",
    "ToolSourceError",
]
