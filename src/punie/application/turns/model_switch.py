"""Another model in the same conversation, or the same one thinking harder or less (issue 6, "What an IDE shows")."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
from attrs import evolve

from punie.application.sessions.engine_memory import EngineMemory
from punie.application.turns.live_session import CLOSE_LIMIT_S, LiveSession
from punie.application.turns.model_shelf import Place
from punie.domain.errors import UnknownEffortError, UnknownModelError, UnreadableSnapshotError
from punie.domain.model.choice import Effort
from punie.domain.session.events import ModelChanged, ModelMenuChanged
from punie.domain.session.transcript import before_last_prompt
from punie.ports.engine import Engine, EngineSession

T = TypeVar("T")


def switch_model(session: LiveSession, model: str, *, in_turn: bool = False) -> Awaitable[None]:
    """Let that model answer from the next prompt on, which waits for it from this call on.

    It knows the conversation so far. No engine may be at work: with `in_turn` the turn that runs is that of a command.
    Raises `UnknownModelError`, `EngineError` where it cannot be used and `SessionStoreError` where the conversation
    cannot be read: then the session keeps the model it has.
    """
    return _switch(session, session.switches.join(), model, in_turn=in_turn)


async def _switch(session: LiveSession, place: Place, model: str, *, in_turn: bool) -> None:
    async with place:
        if model == session.model:
            return
        if model not in session.menu.models:
            raise UnknownModelError(model, session.menu.models)
        ready = await session.shelf.take(model)
        memory = await _memory(session, ready.engine, in_turn=in_turn)
        old, session.engine = session.engine, memory.opened(ready.engine, session.id)
        session.engine_name, session.model = ready.engine.name, model
        if session.effort not in session.shelf.efforts(model):
            session.effort = None
        session.desk.offered.go_by(ready.disclosure)
        session.gauge.size_tokens = ready.context_tokens
        await _let_go(session, old)
        await session.recorder.emit(ModelChanged(model, session.effort))
        if not in_turn:
            await session.settle()


async def set_effort(session: LiveSession, effort: Effort | None) -> None:
    """Let the model think so hard from the next turn on; None is its own default. Raises `UnknownEffortError`."""
    if effort is not None and effort not in session.shelf.efforts(session.model):
        raise UnknownEffortError(effort.value, session.model)
    if effort is not session.effort:
        session.effort = effort
        await session.recorder.emit(ModelChanged(session.model, effort))


async def with_engine(session: LiveSession, use: Callable[[EngineSession], Awaitable[T]]) -> T:
    """What the engine gives, within a turn; where it cannot read its memory of the session, one takes its place first.

    That one goes on from the session's log. Raises what `use` raises, and `SessionStoreError`.
    """
    try:
        return await use(session.engine)
    except UnreadableSnapshotError as error:
        session.log.warning("session %s: it goes on from its log: %s", session.id, error.cause)
    memory = await session.recorder.record.memory(None)
    ready = await session.shelf.take(session.model)
    memory = evolve(memory, since=before_last_prompt(memory.since))
    old, session.engine = session.engine, memory.opened(ready.engine, session.id)
    await _let_go(session, old)
    return await use(session.engine)


async def explore(session: LiveSession) -> None:
    """Find out what else there is to choose, and tell the client where that is more than it knows."""
    told = session.menu
    await session.shelf.explore(session.model)
    if (session.menu.models, session.menu.efforts) != (told.models, told.efforts):
        await session.recorder.emit(ModelMenuChanged())


async def _memory(session: LiveSession, engine: Engine, *, in_turn: bool) -> EngineMemory:
    """What that engine goes on with: the same kind with its own history, another with the transcript.

    A turn of ours that runs is nothing that an engine was asked.
    """
    state = session.engine.snapshot() if engine.name == session.engine_name else None
    if state is not None:
        return EngineMemory(state)
    memory = await session.recorder.record.memory(engine)
    return evolve(memory, since=before_last_prompt(memory.since)) if in_turn else memory


async def _let_go(session: LiveSession, old: EngineSession) -> None:
    try:
        with anyio.move_on_after(CLOSE_LIMIT_S, shield=True):
            await old.aclose()
    except Exception:
        session.log.warning("session %s: the model before was not closed cleanly", session.id, exc_info=True)
