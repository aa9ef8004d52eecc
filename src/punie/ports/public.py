"""The ports that are public: `punie.ports` and `punie.api` give out each name listed here."""

from punie.ports.agent import Agent
from punie.ports.engine import Engine, EngineSession, EventSink, HistoryKeeper, ModelEngine, ToolDoor
from punie.ports.permission import PermissionBroker
from punie.ports.tools import CallProgress, ToolExecutor, ToolProvider, ToolSourceError
from punie.ports.workspace import Terminals, Workspace

__all__ = [
    "Agent",
    "CallProgress",
    "Engine",
    "EngineSession",
    "EventSink",
    "HistoryKeeper",
    "ModelEngine",
    "PermissionBroker",
    "Terminals",
    "ToolDoor",
    "ToolExecutor",
    "ToolProvider",
    "ToolSourceError",
    "Workspace",
]
