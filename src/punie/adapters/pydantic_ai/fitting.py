"""Keeps a running turn's history within the model's context."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic_ai.capabilities import AbstractCapability
from pydantic_ai.exceptions import ModelContextWindowExceededError, RetryModelRequest
from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import ModelRequestContext
from pydantic_ai.tools import RunContext

from punie.adapters.pydantic_ai.toolset import TurnDeps


class FitsTheContext(AbstractCapability[TurnDeps]):
    """Makes the history shorter before a request that would be near the context's end, and after one that was too long.

    `RunContext.messages` is the run's own history: what is put there stays.
    """

    async def before_model_request(
        self, ctx: RunContext[TurnDeps], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Called once a request."""
        return _with(ctx, request_context, await ctx.deps.compactor.where_needed(ctx.messages))

    async def prepare_model_request(
        self, ctx: RunContext[TurnDeps], request_context: ModelRequestContext
    ) -> ModelRequestContext:
        """Called before each attempt: one after the first goes by the history as it is by now."""
        if request_context.attempt > 1:
            request_context.messages = list(ctx.messages)
        return request_context

    async def on_model_request_error(
        self, ctx: RunContext[TurnDeps], *, request_context: ModelRequestContext, error: Exception
    ) -> ModelResponse:
        """Called when an attempt failed; a request that was too long said nothing yet, so it can be made again."""
        if not isinstance(error, ModelContextWindowExceededError) or request_context.attempt > 1:
            raise error
        shorter = await ctx.deps.compactor.where_refused(ctx.messages)
        if shorter is None:
            raise error
        ctx.messages[:] = shorter
        raise RetryModelRequest


def _with(
    ctx: RunContext[TurnDeps], request_context: ModelRequestContext, shorter: Sequence[ModelMessage] | None
) -> ModelRequestContext:
    if shorter is not None:
        ctx.messages[:] = shorter
        request_context.messages = list(shorter)
    return request_context
