"""The time that passes."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable


@runtime_checkable
class Clock(Protocol):
    """Measures durations; lives as long as the process."""

    @abstractmethod
    def monotonic_s(self) -> float:
        """Seconds since some moment; never goes back."""
        ...
