"""The prompts of one session in ACP v2: acknowledged when they take their place, worked on one after the other.

A prompt that comes while another is worked on is held behind it, or joins it where the settings say so. Held prompts
are answered with -32800 where the session is told to stop or is closed (ACP v2, prompt lifecycle and `session/close`).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
from anyio.abc import TaskGroup
from attrs import define, field

from punie.adapters.acp.blocks import encode_block, present
from punie.adapters.acp.errors import to_wire
from punie.adapters.acp.sessions import used
from punie.adapters.acp.v2.activity import Activity, State, Update, state_update
from punie.domain.errors import PunieError
from punie.domain.session.events import TextDelta, ThoughtDelta, ToolCallAnnounced
from punie.domain.session.log import LoggedEvent, PromptAccepted
from punie.domain.session.open_calls import TurnSoFar
from punie.domain.session.turn import StopReason, TurnReport
from punie.domain.values.content import Prompt
from punie.mechanics.jsonrpc.errors import INVALID_REQUEST, REQUEST_CANCELLED, RpcError
from punie.ports.agent import RunningTurn


@define
class MessageIds:
    """The ids of the agent's messages, which every message has in v2; lives as long as the session is followed.

    A message that the engine gave no id is named after its turn and the number of calls before it: text between two
    calls is one message. The ids follow from the log alone, so that a replay has the same.
    """

    _turn: str = field(default="session", init=False)
    _part: int = field(default=0, init=False)

    def begin(self, turn_id: str) -> None:
        """A turn begins."""
        self._turn, self._part = turn_id, 0

    def go_on(self, turn: TurnSoFar) -> None:
        """Follow a turn that is under way from here on."""
        self._turn, self._part = turn.turn_id, turn.announced

    def follow(self, event: object | LoggedEvent) -> None:
        """Note the prompts and calls that the ids depend on, also calls whose cards are held back."""
        match event:
            case PromptAccepted(turn_id):
                self.begin(turn_id)
            case ToolCallAnnounced():
                self._part += 1
            case _:
                pass

    def of(self, event: TextDelta | ThoughtDelta) -> str:
        """The id of the message that this is a piece of."""
        return f"{self._turn}-said-{self._part}" if event.message_id is None else event.message_id


HELD_LIMIT: Final = 16
"""Prompts that may wait for their place in one session."""

END_LIMIT_S: Final = 1.0
"""How long a cancelled turn may take to report its end, once its session is closed or the server ends."""

_CANCELLED = RpcError(REQUEST_CANCELLED, "The session was told to stop before this prompt took its place in it.")
_FULL = RpcError(
    INVALID_REQUEST, f"{HELD_LIMIT} prompts wait for their place in this session. Wait for one of them, or cancel."
)


@define(eq=False)
class _Held:
    """A prompt that waits; `outcome` is the id of its message, or the error in its place."""

    prompt: Prompt
    settled: anyio.Event = field(factory=anyio.Event, init=False)
    outcome: str | BaseException | None = field(default=None, init=False)

    def settle(self, outcome: str | BaseException) -> None:
        self.outcome = outcome
        self.settled.set()


@define(eq=False)
class Foreground:
    """The turns of one session; lives as long as the session is open here.

    `begin_turn` takes a prompt into the session, `cancel_turn` ends the turn that runs, `send` sends an update without
    waiting, and `tasks`, which lives as long as the connection, runs the turns. `joins` and `steer` are those of the
    agent, for this session.
    """

    begin_turn: Callable[[Prompt], RunningTurn]
    cancel_turn: Callable[[], None]
    send: Callable[[Update], None]
    tasks: TaskGroup
    joins: Callable[[Prompt], bool]
    steer: Callable[[Prompt], Awaitable[str | None]]
    ids: MessageIds = field(factory=MessageIds, init=False)
    activity: Activity = field(init=False)
    working: bool = field(default=False, init=False)
    """Whether a turn runs."""

    _open_calls: tuple[str, ...] = field(default=(), init=False)
    _held: deque[_Held] = field(factory=deque[_Held], init=False)
    _over: anyio.Event = field(factory=anyio.Event, init=False)
    _closed: bool = field(default=False, init=False)
    _stops: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self.activity = Activity(self.tell)

    def tell(self, update: Update) -> None:
        """Send an update, as long as the session is open."""
        if not self._closed:
            self.send(update)

    def prompt(self, prompt: Prompt) -> Awaitable[str]:
        """Take a prompt at once; the awaitable waits for its place and gives the id of its message.

        Raises the errors of `Agent.begin_turn`, and `RpcError` where too many prompts wait or this one was cancelled.
        """
        if not self.working:
            return _ready(self._insert(prompt))
        if self.joins(prompt):
            return self._join(prompt, self._stops)
        if len(self._held) >= HELD_LIMIT:
            raise _FULL
        held = _Held(prompt)
        self._held.append(held)
        return self._place_of(held)

    def adopt(self, turn: TurnSoFar, run: Callable[[], Awaitable[TurnReport]]) -> None:
        """Go on with a turn of an earlier connection and send its state; `run` waits for its end."""
        self.working, self._open_calls = True, tuple(turn.open_calls)
        self.ids.go_on(turn)
        self.activity.begin(call_id for call_id, at_work in turn.open_calls.items() if at_work)
        self.tasks.start_soon(self._work, run)

    def offer_cancel(self) -> None:
        """Offer to cancel the calls that were open when the turn was adopted, which a replay does not."""
        for call_id in self._open_calls:
            self.tell({"sessionUpdate": "tool_call_update", "toolCallId": call_id, "capabilities": {"cancel": {}}})
        self._open_calls = ()

    def cancel(self) -> None:
        """Stop the turn that runs, and refuse the held prompts."""
        self._stops += 1
        while self._held:
            self._held.popleft().settle(_CANCELLED)
        if self.working:
            self.activity.stop()
            self.cancel_turn()

    async def close(self, close: Callable[[], Awaitable[None]]) -> None:
        """Cancel, `close` the session and report the end of its turn; no update is sent afterwards."""
        self.cancel()
        try:
            await close()
            with anyio.move_on_after(END_LIMIT_S):
                await self.rest()
            if self.working:
                self.activity.end(_idle(TurnReport(StopReason.CANCELLED)))
        finally:
            self._closed = True

    async def rest(self) -> None:
        """Wait until no turn runs."""
        while self.working:
            await self._over.wait()

    async def join(self, prompt: Prompt) -> str | None:
        """Give a prompt to the turn that runs; returns the id of its message, None where no turn can take it."""
        message_id = await self.steer(prompt)
        if message_id is not None:
            self.tell(user_message(message_id, prompt))
        return message_id

    async def _join(self, prompt: Prompt, stops: int) -> str:
        """Join the turn that runs, or take a place where it is over. Raises `RpcError` where it was told to stop."""
        if (message_id := await self.join(prompt)) is not None:
            return message_id
        if stops != self._stops:
            raise _CANCELLED
        return await self.prompt(prompt)

    async def _place_of(self, held: _Held) -> str:
        try:
            await held.settled.wait()
        except anyio.get_cancelled_exc_class():
            if held.outcome is None:  # withdrawn before it took its place; else its place is the answer
                self._held.remove(held)
                raise
        if isinstance(held.outcome, str):
            return held.outcome
        raise held.outcome or _CANCELLED

    def _insert(self, prompt: Prompt) -> str:
        turn = self.begin_turn(prompt)
        self.working = True
        self.ids.begin(turn.id)
        self.tell(user_message(turn.id, prompt))
        self.activity.begin()
        self.tasks.start_soon(self._work, turn.run)
        return turn.id

    async def _work(self, run: Callable[[], Awaitable[TurnReport]]) -> None:
        try:
            ended = _idle(await run())
        except Exception as error:  # noqa: BLE001  the prompt was answered before, so a failure becomes a state
            ended = _failed(error)
        self.working = False
        self._over.set()
        self._over = anyio.Event()
        self.activity.end(ended)
        self._go_on()

    def _go_on(self) -> None:
        while self._held and not self.working:
            held = self._held.popleft()
            try:
                held.settle(self._insert(held.prompt))
            except PunieError as error:
                held.settle(error)


def user_message(message_id: str, prompt: Prompt) -> Update:
    """The update for a prompt that took its place."""
    content = [encode_block(block) for block in prompt.blocks]
    return {"sessionUpdate": "user_message", "messageId": message_id, "content": content}


def _idle(report: TurnReport) -> Update:
    return {**state_update(State.IDLE), "stopReason": report.stop_reason.value, **used(report)}


def _failed(error: Exception) -> Update:
    wire = to_wire(error)
    told = {"code": wire.code, "message": wire.message, **present(data=wire.data)}
    return {**state_update(State.IDLE), "stopReason": "error", "error": told}


async def _ready(message_id: str) -> str:
    return message_id
