"""Prompts that a project keeps for the people who work on it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from punie.domain.commands import PromptFile


@runtime_checkable
class PromptFiles(Protocol):
    """The prompts of one session's project; lives as long as the session."""

    @abstractmethod
    async def read(self) -> tuple[PromptFile, ...]:
        """Those there are now, by name; what cannot be read, or is no prompt, is left out. Never raises for that."""
        ...
