"""A session taken back to before a turn: its files, its conversation or both, as one act."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress

import anyio
import anyio.lowlevel
from attrs import evolve

from punie.application.sessions.log_reading import LoggedTurn, ids_of
from punie.application.sessions.recorder import SessionRecord
from punie.application.sessions.rewinding import RewindPlan, TurnsBack, carry_out, planned
from punie.domain.errors import LeaseLostError, SessionStoreError, ToolFailedError
from punie.domain.values.display import counted
from punie.ports.history import FileHistory, Part
from punie.ports.sessions import SessionStore

UNDO, REWIND = "undo-", "rewind-"
"""How the ids of changes of files begin: of files alone, and with the conversation."""


async def session_plan(
    history: FileHistory | None,
    record: SessionRecord,
    turn: int | None = None,
    part: Part = Part.BOTH,
    named: Collection[str] = (),
    within: str = "",
) -> RewindPlan:
    """The plan to go back to before the turn of that number, by default the last one that did anything.

    `within` is the id of the turn that asks, which stays; without a `history` no files go back. Where turns behind the
    last one were taken back, the number after it stands for them: files that stayed then can still be named. Raises
    `ToolFailedError` for an unknown turn, and `SessionStoreError`.
    """
    every = await record.turns()
    turns = [one for one in every if one.said and one.turn_id != within]
    number = _last(turns) if turn is None else turn
    behind = every[every.index(turns[-1]) + 1 :] if turns else every
    known = [*turns, *[one for one in behind if not one.said][:1]]
    if not 1 <= number <= len(known):
        raise ToolFailedError(f"There is no turn {number}: the session has {counted(len(turns), 'turn')}.")
    chosen, plan = known[number - 1], RewindPlan(turn=number)
    if part is not Part.CONVERSATION and history is not None:
        since = {one.turn_id for one in every[every.index(chosen) :]}
        plan = evolve(await planned(history, since, named), turn=number)
    if part is Part.FILES or not chosen.said:
        return plan
    asking = next((one for one in every if one.turn_id == within), None)
    left, until = number - 1 + (asking is not None), None if asking is None else asking.sequence
    back = TurnsBack(chosen.sequence, left, len(turns) - number + 1, chosen.title, until)
    return evolve(plan, turns=back)


def _last(turns: Sequence[LoggedTurn]) -> int:
    worked = [number for number, one in enumerate(turns, start=1) if one.worked]
    return worked[-1] if worked else len(turns)


async def take_session_back(history: FileHistory | None, record: SessionRecord, plan: RewindPlan) -> RewindPlan:
    """Go back; returns the plan as it was done.

    With the conversation the session's log says whether it was done, and the files follow: at once, or when the next
    process opens the session. Raises `ToolFailedError`, `SessionStoreError` or `LeaseLostError` with nothing done.
    """
    act, turns = f"{UNDO if plan.turns is None else REWIND}{uuid.uuid4().hex}", plan.turns

    async def commit() -> None:
        if turns is not None:
            await record.take_back(turns.first, turns.until, turns.left, act)
        await anyio.lowlevel.checkpoint()

    done = plan
    with anyio.CancelScope(shield=True):  # once the log has it, the files follow
        if history is None or not plan.back:
            await commit()
        else:
            done = await carry_out(history, plan, act, commit)
            if turns is None and done.back:
                await _note(record, act)
    return done


async def _note(record: SessionRecord, act: str) -> None:
    """Let the log say that files alone were taken back, where there is a log: no entry of it goes."""
    with suppress(ToolFailedError, SessionStoreError, LeaseLostError):  # the files are back, and say so
        await record.take_back(0, 0, len(ids_of(await record.turns())), act)


def committed_in(store: SessionStore, session_id: str) -> Callable[[str], Awaitable[bool]]:
    """Tells whether a change of files that was prepared is to be completed, by its id.

    The note of a change of files alone is written once all is ready; with the conversation the log decides.
    """

    async def committed(act: str) -> bool:
        return not act.startswith(REWIND) or any(one.act == act for one in await store.rewinds(session_id))

    return committed
