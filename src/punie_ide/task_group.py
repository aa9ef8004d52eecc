"""A task group for context managers that other people put their code into."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import anyio.abc


@asynccontextmanager
async def flat_task_group() -> AsyncGenerator[anyio.abc.TaskGroup]:
    """A task group whose body's own exception comes out as itself, not wrapped in a group."""
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
