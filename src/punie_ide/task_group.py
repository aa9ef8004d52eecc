"""A task group for context managers around foreign code."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.abc


@asynccontextmanager
async def flat_task_group() -> AsyncGenerator[anyio.abc.TaskGroup]:
    """A task group that raises an exception of its body as it is, and not wrapped in a group."""
    failure: BaseException | None = None
    try:
        async with anyio.create_task_group() as tasks:
            try:
                yield tasks
            except Exception as error:
                failure = error
                raise
    except BaseExceptionGroup:
        if failure is not None:
            raise failure from failure.__cause__
        raise
