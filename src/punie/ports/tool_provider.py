"""The tools of one source."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from punie.domain.discovery import CatalogAnswer


@runtime_checkable
class ToolProvider(Protocol):
    """Lists what one source offers; lives as long as its session."""

    @abstractmethod
    async def discover_tools(self) -> CatalogAnswer:
        """Ask the source anew and give its whole answer: good entries in its order, bad ones with reasons.

        Every call asks again; caching and time limits are the caller's. Raises `ToolSourceError` where the source
        refuses, answers nonsense or is gone. Cancelling it leaves nothing running here.
        """
        ...


class ToolSourceError(Exception):
    """The source could not be read; the sentence says why. The caller falls back (S0-22)."""
