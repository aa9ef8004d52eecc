"""Where a line would run, as values: nothing here asks the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from attrs import frozen

from shellsight.line import Script

Reader: TypeAlias = Callable[[str], Script]
"""Reads shell code that a line carries inside it (`sh -c '...'`): a parser's `parse`, total as that is."""


@frozen
class Surroundings:
    """The directory a line starts in and whose home `~` is, both absolute; `reader` None: inner code stays unread."""

    cwd: str
    home: str
    reader: Reader | None = None
