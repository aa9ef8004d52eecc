"""The skills that a project and a person keep."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from punie.domain.skills import Skill, SkillText


@runtime_checkable
class SkillShelf(Protocol):
    """The skills of one session; lives as long as it. They are configuration, found without a tool call."""

    @abstractmethod
    async def skills(self) -> tuple[Skill, ...]:
        """Those there are, each name once, in the order in which they are offered; always the same within a session.

        What makes no skill is left out and named in the log. Never raises for that.
        """
        ...

    @abstractmethod
    async def load(self, skill: Skill) -> SkillText:
        """What one of them says now. Raises `ToolFailedError` where it went or broke since."""
        ...
