"""The client as one session's ports in ACP v2: its person and its ears. It lends no files and no terminals."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from punie.adapters.acp.client import OPTION_EVENTS, AcpElicitor, ask_leave, asked_call, choices, tell_changes
from punie.adapters.acp.v2.activity import Activity, Update
from punie.adapters.acp.v2.updates import Updates, encode_content, options_update
from punie.domain.errors import UnknownSessionError
from punie.domain.permission.flow import PermissionOutcome, PermissionQuestion
from punie.domain.permission.question_text import question_markdown
from punie.domain.session.elicitation import Elicitation, ElicitationAnswer
from punie.domain.session.events import SessionEvent, ToolsChanged
from punie.domain.session.session import SessionOptions
from punie.mechanics.jsonrpc.connection import Connection
from punie.ports.engine import EventSink
from punie.ports.people import Elicitor
from punie.ports.permission import PermissionBroker


@frozen
class DraftPermissionBroker(PermissionBroker):
    """The person at the client through `session/request_permission`; meanwhile the session requires action."""

    connection: Connection
    activity: Activity

    async def ask(self, question: PermissionQuestion) -> PermissionOutcome:
        with self.activity.asking(question.call_id):
            return await ask_leave(self.connection, encode_question(question))


@frozen
class DraftElicitor(Elicitor):
    """The person at the client before a form; meanwhile the session requires action."""

    form: AcpElicitor
    activity: Activity

    async def ask(self, elicitation: Elicitation) -> ElicitationAnswer:
        with self.activity.asking(elicitation.call_id):
            return await self.form.ask(elicitation)


@frozen
class DraftEventSink(EventSink):
    """The client's ears through `session/update`; waits while the client does not read.

    `tool_events` says that it also wants to hear of tools that come and go; `options` gives what is set of the session.
    """

    connection: Connection
    session_id: str
    activity: Activity
    updates: Updates
    options: Callable[[], SessionOptions]
    tool_events: bool = False

    async def emit(self, event: SessionEvent) -> None:
        if isinstance(event, ToolsChanged):
            if self.tool_events:
                await tell_changes(self.connection, self.session_id, event)
            return
        update = self._all_options() if isinstance(event, OPTION_EVENTS) else self.updates.encode(event)
        if update is not None:
            await self.connection.notify("session/update", {"sessionId": self.session_id, "update": update})
        self.activity.follow(event)

    def _all_options(self) -> Update | None:
        try:
            return options_update(self.options())
        except UnknownSessionError:
            return None  # it is being closed: its options are not shown any more


def encode_question(question: PermissionQuestion) -> Update:
    """The parameters of `session/request_permission`: the question in words, and the call that it is about."""
    call: Update = asked_call(question)
    if question.diffs:
        call["content"] = [encode_content(diff) for diff in question.diffs]
    return {
        "sessionId": question.session_id,
        "title": question.title,
        "description": question_markdown(question),
        "subject": {"type": "tool_call", "toolCall": call},
        **choices(question),
    }
