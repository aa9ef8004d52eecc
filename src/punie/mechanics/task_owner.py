"""A base for objects that run tasks while they are open."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import anyio
from anyio.abc import TaskGroup


class TaskOwner:
    """An async context manager with a task group, entered and left by the task that owns it; its tasks end then.

    The group is left without the error of the block, which it would wrap into a group of its own. `_tasks` is None
    before the context is entered, and from the moment on in which it is left.
    """

    _tasks: TaskGroup | None = None

    async def __aenter__(self) -> Self:
        self._tasks = anyio.create_task_group()
        await self._tasks.__aenter__()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        tasks, self._tasks = self._tasks, None
        if tasks is not None:
            try:
                await self._let_go(tasks)
            finally:
                await tasks.__aexit__(None, None, None)

    async def _let_go(self, tasks: TaskGroup) -> None:
        """Make the tasks end; the caller waits for them afterwards."""
        tasks.cancel_scope.cancel()
