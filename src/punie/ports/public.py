"""The public names of `punie.ports` (INTERFACES.md section 6)."""

from punie.ports.agent import Agent
from punie.ports.engine import Engine, EngineSession, EventSink, ToolDoor
from punie.ports.permission import PermissionBroker
from punie.ports.tools import CallProgress, ToolExecutor, ToolProvider, ToolSourceError

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
