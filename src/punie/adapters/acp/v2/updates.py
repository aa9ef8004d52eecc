"""Session events as the inner objects of `session/update` in ACP v2, live and when a kept session is replayed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from attrs import define, field

from punie.adapters.acp.blocks import encode_result_content
from punie.adapters.acp.config_options import config_options
from punie.adapters.acp.updates import (
    NOT_SHOWN_AGAIN,
    QuietCalls,
    announced_call,
    encode_update,
    listed_commands,
    plan_entries,
    updated_call,
    without_terminals,
)
from punie.adapters.acp.v2.activity import Update
from punie.adapters.acp.v2.foreground import MessageIds, user_message
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
from punie.domain.session.log import LoggedEvent, PromptAccepted, PromptSteered
from punie.domain.session.session import SessionOptions
from punie.domain.tools.tool import ToolOutcome
from punie.domain.values.content import Diff, ResultContent, TerminalView
from punie.domain.values.json_value import thaw
from punie.domain.values.terminal import ExitStatus
from punie.mechanics.line_diff import git_patch, hunks, quoted_path

PAIRS_LIMIT = 300_000
"""Equal pairs of lines that are compared while nothing else runs: a tenth of a second."""


def encode_diff(diff: Diff) -> dict[str, object]:
    """One file's change, as the content of a call."""
    operation = "add" if diff.old_text is None else "modify"
    return {
        "type": "diff",
        "changes": [{"operation": operation, "path": diff.path, "fileType": "text"}],
        "patch": {"format": "git_patch", "text": patch_of(diff)},
    }


def patch_of(diff: Diff) -> str:
    """The change as Git shows one, with absolute paths and no prefixes."""
    path, body = quoted_path(diff.path), hunks(diff.old_text or "", diff.new_text, PAIRS_LIMIT)
    return git_patch(path, path, body, is_new=diff.old_text is None)


_IN_PIECES = frozenset({"agent_message", "agent_thought"})
"""Messages that a replay begins empty, before their pieces (ACP v2, session setup)."""

PLAN_ID = "plan"
"""A session has one plan."""


def encode_options(options: SessionOptions) -> list[Update]:
    """Every config option of a session with its current value, in the form of v2."""
    return [
        {("configId" if key == "id" else key): value for key, value in option.items()}
        for option in config_options(options)
    ]


def encode_content(content: ResultContent) -> Update:
    """One piece of a call's content."""
    return encode_diff(content) if isinstance(content, Diff) else encode_result_content(content)


@define
class Updates:
    """Encodes the events of one session in their order; lives as long as the session is followed.

    With `live`, a call that has not ended is offered to be cancelled.
    """

    ids: MessageIds
    live: bool = True
    _cancelled: set[str] = field(factory=set[str], init=False)
    _quiet: QuietCalls = field(factory=QuietCalls, init=False)
    _begun: set[tuple[str, object]] = field(factory=set[tuple[str, object]], init=False)

    def encode(self, event: SessionEvent | LoggedEvent) -> Update | None:
        """The update for one event that `ids` followed; None for an event that ACP has no stable update for."""
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
        """The updates that replay one event; none for those of `NOT_SHOWN_AGAIN`."""
        self.ids.follow(event)
        for shown in self._quiet.shown(event):
            yield from self._replayed(shown)

    def _replayed(self, event: SessionEvent | LoggedEvent) -> Iterator[Update]:
        if isinstance(event, NOT_SHOWN_AGAIN):
            return
        if isinstance(event, ToolCallUpdated):
            terminals = tuple(_ended_terminals(event))
            yield from terminals
            event = event if terminals else without_terminals(event)
        update = self.encode(event)
        if update is None:
            return
        kind, message = str(update["sessionUpdate"]).removesuffix("_chunk"), update.get("messageId")
        if kind in _IN_PIECES and (kind, message) not in self._begun:
            self._begun.add((kind, message))
            yield {"sessionUpdate": kind, "messageId": message, "content": []}
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
    """The terminals of a call that ended, from its output: terminals of an earlier process are gone."""
    match thaw(event.raw_output):
        case {"output": str(output), "exitCode": int() | None as code, "signal": str() | None as signal}:
            for part in event.content or ():
                if isinstance(part, TerminalView):
                    yield printed_update(part.terminal_id, output, ExitStatus(code, signal))
        case _:
            pass


def _prompted(event: PromptAccepted) -> Update:
    return user_message(event.turn_id, event.prompt)


def _steered(event: PromptSteered) -> Update:
    return user_message(event.message_id, event.prompt)


def _planned(event: PlanChanged) -> Update:
    return {
        "sessionUpdate": "plan_update",
        "plan": {"type": "items", "planId": PLAN_ID, "entries": plan_entries(event)},
    }


def _not_told(_event: object) -> None:
    """No update: the mode is a config option in v2 and sent with them."""


_FORMS: Mapping[type, Callable[..., Update | None]] = {
    PromptAccepted: _prompted,
    PromptSteered: _steered,
    PlanChanged: _planned,
    CommandsChanged: partial(listed_commands, {"type": "command"}, {"type": "text"}),
    ModeChanged: _not_told,
}
