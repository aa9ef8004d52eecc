"""Bounds of one call, with a tool's own where it has some (the table `[limits]` of the settings)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from attrs import evolve, field, frozen

MIB = 1_048_576

EXPECTED_TIMES = 10
"""A call that takes so many times its expected time is taken for one that hangs."""

EXPECTED_LEAST_S = 30.0
"""No expected time makes a limit shorter than this: a busy machine is no fault of the tool."""


@frozen
class CallLimits:
    """What one call may take.

    `time_s`: seconds of its effect, the person's thinking and the waiting for a free place not counted.
    `output_bytes`: text the model gets of it. `input_bytes`: its arguments as JSON. `files_touched`: paths it names.
    `memory_mb`: data of each program it starts on this machine, in MiB.
    """

    time_s: float = 600.0
    output_bytes: int = 65_536
    input_bytes: int = 8 * MIB
    files_touched: int = 500
    memory_mb: int = 8_192


@frozen
class Limits:
    """The general bounds, those of single tools, and how many calls of a session run at once.

    Lives as long as the session's settings. A call over `concurrent_calls` waits for a place; it does not fail.
    """

    general: CallLimits = CallLimits()
    by_tool: Mapping[str, Mapping[str, float]] = field(factory=lambda: MappingProxyType({}))
    concurrent_calls: int = 16

    def of(self, tool: str, expected_s: float | None = None) -> CallLimits:
        """The bounds of one tool: its own where the settings name it, else the general ones.

        `expected_s` is how long a call of it is expected to take, in seconds; None where nothing says so. Such a call
        has `EXPECTED_TIMES` that long, but never more than the general limit, which is the cap of all tools that the
        settings do not name. A `time_s` that the settings give to the tool itself is taken as it is.
        """
        own = self.by_tool.get(tool)
        general = self.general
        if tool == "read_file" and general.output_bytes == CallLimits().output_bytes:
            general = evolve(general, output_bytes=READ_OUTPUT_BYTES)
        if expected_s is not None:
            general = evolve(general, time_s=_within(general.time_s, expected_s))
        if not own:
            return general
        whole = {bound: int(value) for bound, value in own.items() if bound != "time_s"}
        return evolve(general, time_s=float(own.get("time_s", general.time_s)), **whole)


def _within(cap_s: float, expected_s: float) -> float:
    return min(cap_s, max(EXPECTED_LEAST_S, EXPECTED_TIMES * expected_s))


READ_OUTPUT_BYTES = 16 * MIB
"""A file is read whole unless the settings say otherwise: the model can name a range, and a provider's own limit is
the honest bound."""
