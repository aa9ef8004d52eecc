"""Bounds of one call, with a tool's own where it has some (INTERFACES.md section 4, `[limits]`)."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from attrs import evolve, field, frozen

MIB = 1_048_576


@frozen
class CallLimits:
    """Seconds that an effect may take (the person's thinking not counted), and bytes of text the model gets of it."""

    time_s: float = 600.0
    output_bytes: int = 65_536


@frozen
class Limits:
    """The general bounds and those of single tools; lives as long as the session's settings."""

    general: CallLimits = CallLimits()
    by_tool: Mapping[str, Mapping[str, float]] = field(factory=lambda: MappingProxyType({}))

    def of(self, tool: str) -> CallLimits:
        """The bounds of one tool: its own where the settings name it, else the general ones."""
        own = self.by_tool.get(tool, {})
        general = self.general
        if general.output_bytes == CallLimits().output_bytes and tool == "read_file":
            general = evolve(general, output_bytes=READ_OUTPUT_BYTES)
        return evolve(
            general,
            time_s=float(own.get("time_s", general.time_s)),
            output_bytes=int(own.get("output_bytes", general.output_bytes)),
        )


READ_OUTPUT_BYTES = 16 * MIB
"""A file is read whole unless the settings say otherwise: the model can name a range, and a provider's own limit is
the honest bound."""
