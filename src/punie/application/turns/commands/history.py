"""What becomes of the conversation that the model remembers: /compact and /clear."""

from __future__ import annotations

from punie.application.turns.command_outcome import Answered, Outcome
from punie.application.turns.commands.command import Invocation, SlashCommand
from punie.application.turns.live_session import LiveSession
from punie.application.turns.model_switch import with_engine
from punie.domain.errors import EngineError
from punie.domain.model.choice import DIRECT
from punie.domain.model.compaction import CompactionOrder
from punie.domain.session.commands import CommandInfo
from punie.domain.session.events import ContextUsed, HistoryForgotten
from punie.ports.engine import EngineSession, HistoryKeeper

NOTHING_KEPT = "This session's engine is not reminded of what was said, so nothing is to be done."


class CompactCommand(SlashCommand):
    """`/compact [WHAT TO KEEP IN MIND]`: the model goes on from a summary."""

    @property
    def info(self) -> CommandInfo:
        return CommandInfo("compact", "Have the model go on from a summary of what was said", "what to keep in mind")

    def offered(self, session: LiveSession) -> bool:
        return session.model != DIRECT

    async def run(self, invocation: Invocation) -> Outcome:
        session = invocation.session
        if not isinstance(session.engine, HistoryKeeper):
            return Answered(NOTHING_KEPT)
        above_tokens = session.limits.compact_above_tokens
        order = CompactionOrder(f"{invocation.turn_id}-compaction", invocation.arguments.strip(), above_tokens)

        async def compact(engine: EngineSession) -> bool:
            return isinstance(engine, HistoryKeeper) and await engine.compact(order, events=invocation.events)

        try:
            shorter = await with_engine(session, compact)
        except EngineError as error:
            return Answered(f"The conversation could not be summarised, so it is as it was. {error}")
        if not shorter:
            return Answered("There is nothing to summarise yet.")
        return Answered(
            "From here on the model knows a summary of what was said before, and the latest of it word for word. "
            "You still see all of it."
        )


class ClearCommand(SlashCommand):
    """`/clear`: the model goes on with nothing."""

    @property
    def info(self) -> CommandInfo:
        return CommandInfo("clear", "Have the model forget what was said, and go on with an empty context")

    def offered(self, session: LiveSession) -> bool:
        return session.model != DIRECT

    async def run(self, invocation: Invocation) -> Outcome:
        engine = invocation.session.engine
        if not isinstance(engine, HistoryKeeper):
            return Answered(NOTHING_KEPT)
        engine.forget()
        await invocation.events.emit(HistoryForgotten())
        await invocation.events.emit(ContextUsed(0))
        return Answered(
            "The model has forgotten what was said before. You still see all of it, and it stays in the session's log."
        )
