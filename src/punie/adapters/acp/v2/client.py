"""The client as the ports of one session in ACP v2, which has no files and terminals of the client."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from punie.adapters.acp.blocks import present
from punie.adapters.acp.client import OPTION_EVENTS, AcpEventSink, ask_permission, asked_call, choices
from punie.adapters.acp.v2.activity import Activity, Update
from punie.adapters.acp.v2.updates import Updates, encode_content, encode_options
from punie.domain.permission.flow import PermissionOutcome, PermissionQuestion, question_markdown
from punie.domain.session.elicitation import Elicitation, ElicitationAnswer
from punie.domain.session.events import SessionEvent
from punie.mechanics.jsonrpc.connection import Connection
from punie.ports.people import Elicitor
from punie.ports.permission import PermissionBroker


@frozen
class DraftPermissionBroker(PermissionBroker):
    """The person at the client through `session/request_permission`; the session requires action meanwhile."""

    connection: Connection
    activity: Activity

    async def ask(self, question: PermissionQuestion) -> PermissionOutcome:
        with self.activity.asking(question.call_id):
            return await ask_permission(self.connection, encode_question(question))


@frozen
class DraftElicitor(Elicitor):
    """The forms of another elicitor; the session requires action while one is open."""

    form: Elicitor
    activity: Activity

    async def ask(self, elicitation: Elicitation) -> ElicitationAnswer:
        with self.activity.asking(elicitation.call_id):
            return await self.form.ask(elicitation)


@frozen
class DraftEventSink(AcpEventSink):
    """The updates of one session in the form of v2, and after each event the state that follows from it."""

    activity: Activity
    updates: Updates

    async def emit(self, event: SessionEvent) -> None:
        self.updates.ids.follow(event)
        await super().emit(event)
        self.activity.follow(event)

    def _updates(self, event: SessionEvent) -> Iterator[Update]:
        if isinstance(event, OPTION_EVENTS):
            yield from self._all_options(encode_options)
        elif (update := self.updates.encode(event)) is not None:
            yield update


def encode_question(question: PermissionQuestion) -> Update:
    """The parameters of `session/request_permission`: the question in words, and the call that it concerns."""
    diffs = [encode_content(diff) for diff in question.diffs]
    call = {**asked_call(question), **present(content=diffs or None)}
    return {
        "sessionId": question.session_id,
        "title": question.title,
        "description": question_markdown(question),
        "subject": {"type": "tool_call", "toolCall": call},
        **choices(question),
    }
