"""Running the calls of one source."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from punie.domain.content import ResultContent
from punie.domain.tool import ToolCall, ToolResult


@runtime_checkable
class CallProgress(Protocol):
    """How a running call shows what it has so far; `call_id` is the call's, as the client knows it."""

    call_id: str

    @abstractmethod
    async def show(self, *content: ResultContent) -> None:
        """Replace what the client shows of the call.

        May be called as often as there is something new: what comes too fast for a person is left out, the last is not.
        """
        ...

    @abstractmethod
    async def report(self, message: str, fraction: float | None = None) -> None:
        """Say how far the call is: one line, and the part that is done (0 to 1) where it is known (S2-92)."""
        ...


@runtime_checkable
class ToolExecutor(Protocol):
    """Runs calls that the tool desk let through; nobody else calls it. Lives as long as its session."""

    @abstractmethod
    async def execute(self, call: ToolCall, progress: CallProgress) -> ToolResult:
        """Run one call whose arguments fit the tool's schema, and give its result.

        Raises a `ToldToModel` error where the tool cannot do it. Runs at most once: it is never repeated. When it is
        cancelled, it stops what it started before it lets go, within the bound its caller sets.
        """
        ...
