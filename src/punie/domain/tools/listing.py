"""The tools of a session as somebody outside of it may see them: which there are, which are on, which are missing."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from punie.domain.tools.availability import LeftOut
from punie.domain.tools.tool import ToolDescriptor


@frozen
class RegistryStatistics:
    """How many tools there are; `by_source` and `by_category` count the registered ones."""

    registered: int
    enabled: int
    disabled: int
    left_out: int
    by_source: Mapping[str, int]
    by_category: Mapping[str, int]


@frozen
class ListedTool:
    """One registered tool. `locked` where the settings disable it (`tools.disabled`): nobody can switch that on."""

    tool: ToolDescriptor
    enabled: bool
    locked: bool = False


@frozen
class ToolListing:
    """Every tool of a session in offered order, those that cannot work here with reasons, and the figures."""

    tools: tuple[ListedTool, ...]
    left_out: tuple[LeftOut, ...]
    statistics: RegistryStatistics
