"""A question of Punie's own to the person of a session, such as whether to go on beyond a budget."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import anyio

from punie.domain.permission.flow import PermissionOption, PermissionQuestion, Selected
from punie.domain.session.events import ToolCallAnnounced, ToolCallUpdated
from punie.domain.tools.execution import CallStatus
from punie.domain.tools.tool import ToolKind
from punie.domain.values.content import Text
from punie.ports.engine import EventSink
from punie.ports.permission import PermissionBroker


async def ask_person(
    broker: PermissionBroker,
    lane: EventSink,
    session_id: str,
    about: str,
    title: str,
    words: str,
    options: Sequence[PermissionOption],
) -> PermissionOption:
    """The option that the person chose, else the last one. The card that the question needs is not logged."""
    call_id, answer = f"{about}_{uuid.uuid4().hex}", options[-1]
    await lane.emit(ToolCallAnnounced(call_id, about, title, ToolKind.OTHER))
    question = PermissionQuestion(session_id, call_id, about, title, ToolKind.OTHER, f"{words}.", tuple(options))
    try:
        outcome = await broker.ask(question)
        chosen = (option for option in options if isinstance(outcome, Selected) and option.id == outcome.option_id)
        answer = next(chosen, answer)
    finally:
        with anyio.move_on_after(1.0, shield=True):
            await lane.emit(ToolCallUpdated(call_id, CallStatus.IN_PROGRESS))
            told = (Text(f"{words}: {answer.name.lower()}."),)
            await lane.emit(ToolCallUpdated(call_id, CallStatus.COMPLETED, told))
    return answer
