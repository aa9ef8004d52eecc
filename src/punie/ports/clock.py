"""The time that passes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable


@runtime_checkable
class Clock(Protocol):
    """Measures durations, and says when; lives as long as the process."""

    @abstractmethod
    def monotonic_s(self) -> float:
        """Seconds since some moment; never goes back."""
        ...

    @abstractmethod
    def epoch_s(self) -> float:
        """Seconds since 1970 in UTC, as the machine has it; may be set back, so never measure with it."""
        ...
