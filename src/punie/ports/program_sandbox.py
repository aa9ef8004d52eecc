"""Where programs run that a model wrote."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, runtime_checkable

from punie.domain.json_value import JsonObject, JsonValue
from punie.domain.programs import ProgramEnd, ProgramLimits

HostCall: TypeAlias = Callable[[str, tuple[JsonValue, ...], JsonObject], Awaitable[JsonValue]]
"""A function that the program calls: name, arguments by place, arguments by name. Raises `CallRaisedError`."""


@runtime_checkable
class ProgramSandbox(Protocol):
    """Runs programs that reach nothing: no file, no network, no process, no environment. Lives as long as the session.

    Whatever a program does, it ends within its limits and takes nothing of this process with it.
    """

    @abstractmethod
    async def run(self, program: str, call: HostCall, limits: ProgramLimits) -> ProgramEnd:
        """Run one to its end; `call` is awaited for each function that the program does not define itself.

        Cancelling it ends the program at once. An error in the program is in its end and is not raised; raises
        `ToolFailedError` where no program can be run at all.
        """
        ...
