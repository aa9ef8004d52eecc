"""The values that a line's analysis is given by its caller; nothing here asks the machine."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias, runtime_checkable

from attrs import frozen

if TYPE_CHECKING:
    from shellsight.line import Script

LINE_LIMIT_BYTES = 65_536
"""A longer line is not read at all: it counts as not understood."""


@runtime_checkable
class ShellParser(Protocol):
    """Reads lines for `/bin/sh -c`; stateless, may be shared between threads, lives as long as the process."""

    @abstractmethod
    def parse(self, line: str) -> Script:
        """The tree of a line.

        Args:
            line: any text.

        Returns:
            The line's commands. Whatever cannot be read, or reads differently in sh, bash and zsh, is `Unreadable`,
            and the script is not `readable`.

        The method raises nothing, and takes time that grows with the line's length.
        """


Reader: TypeAlias = "Callable[[str], Script]"
"""Reads shell code that a line carries inside it (`sh -c '...'`): the `parse` of a `ShellParser`."""


@frozen
class Surroundings:
    """The place where a line would run.

    Args:
        cwd: the working directory, an absolute path.
        home: the home folder of the user, the value of `~`, an absolute path.
        reader: reads shell code inside the line; None leaves such code unread, and unknown.
    """

    cwd: str
    home: str
    reader: Reader | None = None
