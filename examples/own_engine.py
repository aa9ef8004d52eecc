"""An engine around a model of your own, with all that engines promise: `python examples/own_engine.py` shows it."""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Callable
from functools import partial
from pathlib import Path
from typing import TypeAlias, cast

import anyio
from attrs import define, frozen

from punie.api import (
    AgentSaid,
    Engine,
    EngineError,
    EngineErrorKind,
    EngineSession,
    EventSink,
    PersonSaid,
    PlugIns,
    StopReason,
    TextDelta,
    ToolCall,
    ToolCatalog,
    ToolDoor,
    ToolUsed,
    Transcript,
    Turn,
    TurnStoppedShort,
    UnreadableSnapshotError,
    open_session_here,
)

Message: TypeAlias = dict[str, object]
Model: TypeAlias = Callable[[list[Message], ToolCatalog], AsyncIterator[str | ToolCall]]
"""Your model: it is told the conversation and the tools, and answers in pieces of text and calls."""

INTERRUPTED = "This call was interrupted; whether it did its work is not known."


class BusyError(Exception):
    """What your model raises where it has too much to do."""


@frozen
class OwnEngine(Engine):
    """Holds no conversation: one engine serves every session."""

    model: Model

    def open(self, session_id: str, snapshot: bytes | None = None, since: Transcript = ()) -> EngineSession:
        return OwnSession(self.model, [*remembered(snapshot), *told(since)])


@define
class OwnSession(EngineSession):
    """One conversation."""

    model: Model
    history: list[Message]

    async def run(self, turn: Turn, *, tools: ToolDoor, events: EventSink) -> StopReason:
        said: list[Message] = [{"user": turn.prompt.text}]
        try:
            for number in range(turn.limits.max_requests):
                if not await self._answer(said, f"{turn.id}-{number}", turn.instructions, tools, events):
                    return StopReason.END_TURN
            return StopReason.MAX_TURN_REQUESTS
        except BusyError as error:
            kind = EngineErrorKind.RATE_LIMIT.value
            raise EngineError(kind, "The model has too much to do.", "Send the prompt again in a minute.") from error
        finally:  # also where the turn is cancelled: what was said and done stays
            self.history += said

    async def _answer(
        self, said: list[Message], message_id: str, instructions: str, tools: ToolDoor, events: EventSink
    ) -> bool:
        """One request; whether the model called tools, and so is to be asked again."""
        catalog = await tools.offered()
        system: Message = {"system": f"{instructions}\n\n{catalog.notes}".strip()}
        calls: list[tuple[ToolCall, Message]] = []
        text, answer = "", Message()
        async for piece in self.model([system, *self.history, *said], catalog):
            if isinstance(piece, ToolCall):
                # The pair is whole from the start: whatever happens, the next request is valid.
                calls.append((piece, {"call": piece.name, "arguments": plain(piece.arguments), "result": INTERRUPTED}))
                continue
            if not text:
                said.append(answer)
            text += piece
            answer["agent"] = text
            await events.emit(TextDelta(piece, message_id))
        async with anyio.create_task_group() as tasks:
            for call, pair in calls:
                said.append(pair)
                tasks.start_soon(partial(run_one, call, pair, tools))
        return bool(calls)

    def snapshot(self) -> bytes:
        return json.dumps(self.history).encode()

    async def aclose(self) -> None: ...


async def run_one(call: ToolCall, pair: Message, tools: ToolDoor) -> None:
    """The desk asks leave, checks, runs and shows the call; its result is data, also where it failed."""
    pair["result"] = (await tools.call(call)).text


def plain(value: object) -> object:
    """A call's arguments as JSON takes them."""
    return json.loads(json.dumps(value, default=dict))


def remembered(snapshot: bytes | None) -> list[Message]:
    """What an engine of this kind wrote down."""
    try:
        value: object = json.loads(snapshot or b"[]") if snapshot != b"" else None
    except ValueError as error:
        raise UnreadableSnapshotError from error
    messages = cast("list[object]", value) if isinstance(value, list) else [None]
    if not all(isinstance(message, dict) for message in messages):
        raise UnreadableSnapshotError
    return cast("list[Message]", messages)


def told(transcript: Transcript) -> list[Message]:
    """What another engine did, or a turn whose process died."""
    messages: list[Message] = []
    for item in transcript:
        match item:
            case PersonSaid(prompt):
                messages.append({"user": prompt.text})
            case AgentSaid(text):
                messages.append({"agent": text})
            case ToolUsed():
                messages.append({"call": item.tool, "arguments": plain(item.arguments), "result": item.text})
            case TurnStoppedShort(how):
                messages.append({"agent": f"[This turn {how}.]"})
            case _:
                pass
    return messages


async def counting_model(messages: list[Message], catalog: ToolCatalog) -> AsyncIterator[str | ToolCall]:
    """Stands in for a model: it lists the project's files, and says how many there are."""
    if "user" in messages[-1]:
        yield ToolCall(f"list-{len(messages)}", "list_files", {})
    else:
        yield f"Prompt {sum('user' in message for message in messages)}: "
        yield f"{len(str(messages[-1]['result']).splitlines())} files.\n"


def counting(_rest: str) -> Engine:
    """What an entry point of `punie.engines` names; it is given what follows the colon in the model's name."""
    return OwnEngine(counting_model)


async def main() -> None:
    """Two prompts to one session."""
    with tempfile.TemporaryDirectory() as folder:
        for name in ("a.txt", "b.txt"):
            (Path(folder) / name).touch()
        own = PlugIns(engines={"own": lambda: counting})
        async with open_session_here(folder, model="own:counting", plug_ins=own) as session:
            for prompt in ("What is here?", "And now?"):
                await session.prompt(prompt)


if __name__ == "__main__":
    anyio.run(main)
