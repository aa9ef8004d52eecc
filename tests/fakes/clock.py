"""Time that passes when a test says so."""

from __future__ import annotations

from punie.ports.machine import Clock


class FakeClock(Clock):
    """Stands still until `advance`; `step_s` is added at each reading, for code that measures how long it took."""

    def __init__(self, now_s: float = 0.0, *, step_s: float = 0.0) -> None:
        self.now_s = now_s
        self.step_s = step_s

    def monotonic_s(self) -> float:
        now = self.now_s
        self.now_s += self.step_s
        return now

    def epoch_s(self) -> float:
        return 1_800_000_000.0 + self.now_s

    def advance(self, seconds: float) -> None:
        """Let time pass; it cannot run backwards."""
        if seconds < 0:
            raise ValueError("a clock never goes back")
        self.now_s += seconds
