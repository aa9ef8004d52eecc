"""Reading a shell line: text to a tree of commands."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Protocol, runtime_checkable

if TYPE_CHECKING:
    from shellsight.line import Script

LINE_LIMIT_BYTES = 65_536
"""A longer line is not read at all: it counts as not understood."""


@runtime_checkable
class ShellParser(Protocol):
    """Reads lines for `/bin/sh -c`; stateless, may be shared, lives as long as the process."""

    @abstractmethod
    def parse(self, line: str) -> Script:
        """The line's commands.

        Total: whatever cannot be read, or reads differently in sh, bash and zsh, is `Unreadable` and the script not
        `readable`; it never raises and takes time that grows with the line's length.
        """
        ...
