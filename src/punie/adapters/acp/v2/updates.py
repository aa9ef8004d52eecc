"""Session events as the inner objects of ACP v2's `session/update`: messages and calls are put, and put again."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from attrs import define, field

from punie.adapters.acp.blocks import encode_result_content
from punie.adapters.acp.config_options import config_options
from punie.adapters.acp.replay import NOT_SHOWN_AGAIN, without_terminals
from punie.adapters.acp.updates import announced_call, encode_update, plan_entries, updated_call
from punie.adapters.acp.v2.activity import Update
from punie.adapters.acp.v2.diffs import encode_diff
from punie.adapters.acp.v2.foreground import user_message
from punie.adapters.acp.v2.message_ids import MessageIds
from punie.adapters.acp.v2.terminals import printed_update
from punie.domain.session.events import (
    CallFinished,
    CommandsChanged,
    ModeChanged,
    PlanChanged,
    SessionEvent,
    TextDelta,
    ThoughtDelta,
    ToolCallAnnounced,
    ToolCallUpdated,
)
from punie.domain.session.log import LoggedEvent, PromptAccepted
from punie.domain.session.session import SessionOptions
from punie.domain.tools.tool import ToolOutcome
from punie.domain.values.content import Diff, ResultContent, TerminalView
from punie.domain.values.json_value import thaw
from punie.domain.values.terminal import ExitStatus

PLAN_ID = "plan"
"""A session has one plan."""


def encode_options(options: SessionOptions) -> list[Update]:
    """Every config option of a session with what it is set to."""
    return [
        {("configId" if key == "id" else key): value for key, value in option.items()}
        for option in config_options(options)
    ]


def options_update(options: SessionOptions) -> Update:
    """The update that tells a client of any change of them."""
    return {"sessionUpdate": "config_option_update", "configOptions": encode_options(options)}


def encode_content(content: ResultContent) -> Update:
    """One piece of a call's content."""
    return encode_diff(content) if isinstance(content, Diff) else encode_result_content(content)


@define
class Updates:
    """Turns one session's events into updates, in their order; lives as long as they are followed.

    Those that are `live` say as well that a call may be cancelled as long as it has not ended.
    """

    ids: MessageIds
    live: bool = True
    _cancelled: set[str] = field(factory=set[str], init=False)

    def encode(self, event: SessionEvent | LoggedEvent) -> Update | None:
        """The update for one event; None for those that ACP has no stable update for."""
        self.ids.follow(event)
        match event:
            case TextDelta() | ThoughtDelta():
                return {**(encode_update(event) or {}), "messageId": self.ids.of(event)}
            case ToolCallAnnounced():
                offer: Update = {"capabilities": {"cancel": {}}} if self.live else {}
                return {**announced_call(event), "sessionUpdate": "tool_call_update", "name": event.tool, **offer}
            case CallFinished(call_id, _, ToolOutcome.CANCELLED):
                self._cancelled.add(call_id)
                return None
            case ToolCallUpdated():
                return self._updated(event)
            case _:
                encode = _FORMS.get(type(event))
                return encode_update(event) if encode is None else encode(event)

    def replay(self, event: LoggedEvent) -> Iterator[Update]:
        """The updates that show one event again; none for what a client is told otherwise, or never was."""
        if isinstance(event, NOT_SHOWN_AGAIN):
            return
        if isinstance(event, ToolCallUpdated):
            terminals = tuple(_ended_terminals(event))
            yield from terminals
            event = event if terminals else without_terminals(event)
        update = self.encode(event)
        if update is not None:
            yield update

    def _updated(self, event: ToolCallUpdated) -> Update:
        update = updated_call(event, encode_content)
        if event.status is None or not event.status.terminal:
            return update
        if event.call_id in self._cancelled:
            self._cancelled.discard(event.call_id)
            update["status"] = "cancelled"
        return {**update, "capabilities": None} if self.live else update


def _ended_terminals(event: ToolCallUpdated) -> Iterator[Update]:
    """The terminals of a call that ended, as far as it says what they printed: in our process they are no more."""
    match thaw(event.raw_output):
        case {"output": str(output), "exitCode": int() | None as code, "signal": str() | None as signal}:
            for part in event.content or ():
                if isinstance(part, TerminalView):
                    yield printed_update(part.terminal_id, output, ExitStatus(code, signal))
        case _:
            pass


def _prompted(event: PromptAccepted) -> Update:
    return user_message(event.turn_id, event.prompt)


def _planned(event: PlanChanged) -> Update:
    return {
        "sessionUpdate": "plan_update",
        "plan": {"type": "items", "planId": PLAN_ID, "entries": plan_entries(event)},
    }


def _commanded(event: CommandsChanged) -> Update:
    listed: list[Update] = []
    for command in event.commands:
        one: Update = {"type": "command", "name": command.name, "description": command.description}
        listed.append(one if command.hint is None else {**one, "input": {"type": "text", "hint": command.hint}})
    return {"sessionUpdate": "available_commands_update", "availableCommands": listed}


def _not_told(_event: object) -> None:
    """The mode is a config option, and told with them."""


_FORMS: Mapping[type, Callable[..., Update | None]] = {
    PromptAccepted: _prompted,
    PlanChanged: _planned,
    CommandsChanged: _commanded,
    ModeChanged: _not_told,
}
