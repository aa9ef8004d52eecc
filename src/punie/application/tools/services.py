"""What the tools of a session are made of: its services, by their types."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, TypeVar

Service = TypeVar("Service")


class Services(Protocol):
    """What a tool may take from its session: ports by their type. Lives as long as the session."""

    @abstractmethod
    def get(self, kind: type[Service]) -> Service:
        """The session's implementation of that port. Raises `LookupError` where it has none."""
        ...


class NoServices(Services):
    """A session without services: for tools that need none."""

    def get(self, kind: type[Service]) -> Service:
        raise LookupError(f"this session has no {kind.__name__}")
