"""What must hold in every conversation in ACP v2, where states and messages stand for what v1 has answers for."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import define, field

from tests.e2e.wire_log import Frame
from tests.e2e.wire_rules import RULES, Conversation, Rule, key_of, turns_and_cards_keep_their_order

FINAL = {"completed", "failed", "cancelled"}
_MESSAGES = {"agent_message_chunk", "agent_thought_chunk"}
_OF_A_TURN = {*_MESSAGES, "tool_call_update", "plan_update"}
GONE = {"tool_call", "plan", "current_mode_update"}


@define
class _Session:
    """One session as the client sees it."""

    state: str = "idle"
    replaying: bool = False
    closed: bool = False
    cards: dict[str, str] = field(factory=dict[str, str])
    messages: list[str] = field(factory=list[str])


@define
class _Story:
    """One pass over the log that keeps sessions with their states and cards; `told` collects what is wrong."""

    talk: Conversation
    told: list[str] = field(factory=list[str])
    asked: dict[str, Frame] = field(factory=dict[str, Frame])
    sessions: dict[str, _Session] = field(factory=dict[str, _Session])

    def run(self) -> list[str]:
        for frame in self.talk.log.frames:
            if not isinstance(frame.message, dict):
                continue
            if frame.sender == "client":
                self._sent(frame)
            elif frame.is_answer:
                self._answered(frame)
            elif frame.method == "session/update":
                self._updated(frame, frame.params["sessionId"], frame.params["update"])
            elif frame.method == "session/request_permission":
                self._questioned(frame)
        for name, session in self.sessions.items():
            if not self.talk.ended_early and session.state != "idle" and not session.closed:
                self.told.append(f"session {name} was left {session.state}")
        return self.told

    def _sent(self, frame: Frame) -> None:
        if not frame.is_request:
            return
        self.asked[key_of(frame.message["id"])] = frame
        if frame.method == "session/resume":
            session = self.sessions[frame.params["sessionId"]] = _Session()
            session.replaying = frame.params.get("replayFrom") is not None

    def _answered(self, frame: Frame) -> None:
        asked = self.asked.get(key_of(frame.message.get("id")))
        result = frame.message.get("result")
        if asked is None or not isinstance(result, dict):
            return
        if asked.method in {"session/new", "session/fork"}:
            self.sessions.setdefault(result["sessionId"], _Session())
            return
        session = self.sessions.get(asked.params.get("sessionId", "")) if isinstance(asked.params, dict) else None
        if session is None:
            return
        if asked.method == "session/prompt" and session.messages.count(result["messageId"]) != 1:
            self.told.append(f"a prompt's message was not told once: {session.messages} and {frame}")
        elif asked.method == "session/close":
            if session.state != "idle":
                self.told.append(f"a session was closed while {session.state}: {frame}")
            session.closed = True
        elif asked.method == "session/resume":
            session.replaying = False

    def _updated(self, frame: Frame, name: str, update: dict[str, object]) -> None:
        session = self.sessions.get(name)
        kind = str(update.get("sessionUpdate"))
        if kind in GONE:
            self.told.append(f"v2 has no {kind}: {frame}")
        if session is None:
            return  # updates may come before the answer that names the session
        if session.closed:
            self.told.append(f"an update of a closed session: {frame}")
        if kind in _OF_A_TURN and session.state == "idle" and not session.replaying:
            self.told.append(f"an update of a turn while the session is idle: {frame}")
        match kind:
            case "state_update":
                self._changed(frame, session, str(update["state"]), update)
            case "tool_call_update":
                self._card(frame, session, update)
            case "user_message":
                session.messages.append(str(update["messageId"]))
            case _:
                pass

    def _changed(self, frame: Frame, session: _Session, state: str, update: dict[str, object]) -> None:
        if state == "idle":
            left = [call for call, status in session.cards.items() if status not in FINAL]
            if left and not session.replaying:
                self.told.append(f"idle while tool calls {left} are open: {frame}")
            if session.state != "idle" and "stopReason" not in update:
                self.told.append(f"work ended and nothing says why: {frame}")
            if session.state == "idle" and "stopReason" in update:
                self.told.append(f"an end of work that nobody began: {frame}")
        elif state == session.state:
            self.told.append(f"the same state twice: {frame}")
        session.state = state

    def _card(self, frame: Frame, session: _Session, update: dict[str, object]) -> None:
        call, status = str(update["toolCallId"]), update.get("status")
        before = session.cards.get(call)
        if before is None and (status != "pending" or "title" not in update or "name" not in update):
            self.told.append(f"a card must begin pending, with its title and name: {frame}")
        if before in FINAL:
            self.told.append(f"an update after {before}: {frame}")
        if before == "in_progress" and status == "pending":
            self.told.append(f"the status went back: {frame}")
        if status in FINAL and update.get("capabilities", 0) is not None and not session.replaying:
            self.told.append(f"an ended call still offers to be cancelled: {frame}")
        session.cards[call] = str(status or before)

    def _questioned(self, frame: Frame) -> None:
        session = self.sessions.get(frame.params["sessionId"])
        call = frame.params["subject"]["toolCall"]["toolCallId"]
        if session is None or session.cards.get(call) != "pending":
            self.told.append(f"permission asked for a tool call that is not pending: {frame}")


def states_and_cards_keep_their_order(talk: Conversation) -> Iterator[str]:
    """Work is told from its beginning to its one end; one life a tool call; a prompt's message is told once."""
    yield from _Story(talk).run()


DRAFT_RULES: tuple[Rule, ...] = (
    *(rule for rule in RULES if rule is not turns_and_cards_keep_their_order),
    states_and_cards_keep_their_order,
)
