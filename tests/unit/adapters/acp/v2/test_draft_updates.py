"""Events as ACP v2's updates: every message has an id, a call is put and put again, and a replay says the same."""

from __future__ import annotations

from collections.abc import Iterable

from punie.adapters.acp.v2.foreground import MessageIds
from punie.adapters.acp.v2.updates import Updates, encode_options
from punie.domain.permission.rules import Mode
from punie.domain.session.events import (
    CallFinished,
    CommandsChanged,
    ModeChanged,
    PlanChanged,
    SessionEvent,
    TextDelta,
    ThoughtDelta,
    TitleChanged,
    ToolCallAnnounced,
    ToolCallUpdated,
    TurnEnded,
)
from punie.domain.session.log import LoggedEvent, PromptAccepted, SessionBegun
from punie.domain.session.prompt_files import CommandInfo
from punie.domain.session.session import SessionOptions
from punie.domain.session.turn import PlanStep, StepPriority, StepStatus, StopReason
from punie.domain.tools.execution import CallStatus
from punie.domain.tools.tool import ToolKind, ToolOutcome
from punie.domain.values.content import Prompt, TerminalView

CARD = ToolCallAnnounced("c", "run_command", "Running ls", ToolKind.EXECUTE, ("/p/a",), {"command": "ls"}, 3)
STORY: tuple[LoggedEvent, ...] = (
    TextDelta("named", "engine-1"),
    TextDelta("be"),
    TextDelta("fore"),
    ThoughtDelta("hm"),
    CARD,
    ToolCallUpdated("c", CallStatus.IN_PROGRESS),
    CallFinished("c", "run_command", ToolOutcome.CANCELLED, "stopped"),
    ToolCallUpdated("c", CallStatus.FAILED),
    TextDelta("after"),
)


def live(events: Iterable[SessionEvent], turn_id: str = "t") -> list[dict[str, object]]:
    ids = MessageIds()
    ids.begin(turn_id)
    updates, shown = Updates(ids), list[dict[str, object] | None]()
    for event in events:
        ids.follow(event)
        shown.append(updates.encode(event))
    return [update for update in shown if update is not None]


def replayed(*events: LoggedEvent) -> list[dict[str, object]]:
    updates = Updates(MessageIds(), live=False)
    return [update for event in events for update in updates.replay(event)]


def test_every_message_has_an_id_and_a_call_begins_another_one() -> None:
    ids = [update["messageId"] for update in live(STORY) if "messageId" in update]  # type: ignore[arg-type]
    assert ids == ["engine-1", "t-said-0", "t-said-0", "t-said-0", "t-said-1"]


def test_a_replay_gives_messages_and_calls_the_ids_they_had() -> None:
    prompt = PromptAccepted("t", Prompt.of_text("hi"))
    first, *rest = replayed(SessionBegun("/p"), prompt, *STORY, TitleChanged("hi"), TurnEnded(StopReason.END_TURN))
    assert first == {"sessionUpdate": "user_message", "messageId": "t", "content": [{"type": "text", "text": "hi"}]}
    told = live(STORY)  # type: ignore[arg-type]
    for update in told:
        update.pop("capabilities", None)
    begun = [update for update in rest if update.get("content") == []]
    kinds = ["agent_message", "agent_message", "agent_thought", "agent_message"]
    assert [update["sessionUpdate"] for update in begun] == kinds
    assert [update for update in rest if update not in begun] == told
    for update in begun:
        piece = rest[rest.index(update) + 1]
        assert piece["messageId"] == update["messageId"], "its pieces follow"


def test_a_call_offers_to_be_cancelled_until_it_ends() -> None:
    begun, running, ended = [update for update in live(STORY) if "toolCallId" in update]  # type: ignore[arg-type]
    assert begun == {
        "sessionUpdate": "tool_call_update", "toolCallId": "c", "name": "run_command", "title": "Running ls",
        "kind": "execute", "status": "pending", "rawInput": {"command": "ls"},
        "locations": [{"path": "/p/a", "line": 3}], "capabilities": {"cancel": {}},
    }  # fmt: skip
    assert "capabilities" not in running
    assert (ended["status"], ended["capabilities"]) == ("cancelled", None)


def test_only_a_call_that_was_cancelled_ends_as_cancelled() -> None:
    failed = CallFinished("c", "x", ToolOutcome.FAILED, "no")
    (update,) = live([failed, ToolCallUpdated("c", CallStatus.FAILED)])
    assert update["status"] == "failed"


def test_a_terminal_of_an_earlier_process_is_not_shown_again() -> None:
    event = ToolCallUpdated("c", CallStatus.COMPLETED, (TerminalView("t1"),))
    (update,) = replayed(event)
    assert [part["type"] for part in update["content"]] == ["content"]  # type: ignore[attr-defined]
    assert event.content == (TerminalView("t1"),)


def test_a_plan_commands_and_options_have_the_shapes_of_v2() -> None:
    plan = (PlanStep("mend", StepStatus.PENDING, StepPriority.LOW),)
    commands = (CommandInfo("model", "Picks", "name"), CommandInfo("clear", "Forgets", None))
    planned, listed = live([PlanChanged(plan), CommandsChanged(commands), ModeChanged(Mode.AUTO)])
    entries = [{"content": "mend", "priority": "low", "status": "pending"}]
    assert planned == {
        "sessionUpdate": "plan_update",
        "plan": {"type": "items", "planId": "plan", "entries": entries},
    }
    assert listed["availableCommands"] == [
        {"type": "command", "name": "model", "description": "Picks", "input": {"type": "text", "hint": "name"}},
        {"type": "command", "name": "clear", "description": "Forgets"},
    ]
    options = encode_options(SessionOptions())
    assert [option["configId"] for option in options][:2] == ["mode", "model"]
    assert all("id" not in option for option in options)
