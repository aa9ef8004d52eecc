"""Twins: tools of one purpose, of which a session offers one. Profiles say the purposes."""

from __future__ import annotations

from collections.abc import Container, Sequence

from punie.application.offer.bridged import BridgedTool
from punie.application.offer.profiles import ToolRow, Wins
from punie.application.tools.session_tool import SessionTool
from punie.domain.tools.catalog import Twins
from punie.domain.tools.tool import ToolSource


def hidden_twins(tools: Sequence[SessionTool], by_client: Container[str], choice: Twins) -> dict[str, str]:
    """The tools that are not offered, by name, each with the reason in words for a person.

    `by_client` are the names of tools in Punie's catalogue that the client carries out, and so knows as much of the
    files as its own server does. A tool whose server failed gives way to Punie's. A part of a tool
    (`SessionTool.parts`) has a name of its own, such as `code-rename`.
    """
    if choice is Twins.BOTH:
        return {}
    hidden: dict[str, str] = {}
    purposes: dict[str, list[tuple[ToolRow, BridgedTool]]] = {}
    for tool in tools:
        if tool.descriptor.source is not ToolSource.BUILT_IN and isinstance(tool, BridgedTool) and tool.row.purpose:
            purposes.setdefault(tool.row.purpose, []).append((tool.row, tool))
    own = {
        name
        for tool in (tools if purposes else ())
        for name in (tool.descriptor.name, *(f"{tool.descriptor.name}-{part}" for part in tool.parts))
    }
    for purpose, twins in purposes.items():
        twins.sort(key=lambda twin: (not twin[1].works, twin[0].place))
        (row, best), *others = twins
        name = best.descriptor.name
        if purpose not in own:
            winner, why = name, f"{name} does the same"
        elif best.works and _wins(row, by_server=purpose not in by_client, choice=choice):
            winner, why = name, f"{name} does the same and {row.knows}" if row.knows else f"{name} does the same"
            hidden[purpose] = why
        else:
            winner, why = purpose, f"Punie's {purpose} does the same"
            others = twins
        hidden |= {twin.descriptor.name: why for _, twin in others if twin.descriptor.name != winner}
    return hidden


def _wins(row: ToolRow, *, by_server: bool, choice: Twins) -> bool:
    if choice is not Twins.AUTO:
        return choice is Twins.IDE
    return row.wins is Wins.ALWAYS or (row.wins is Wins.DISK and by_server)
