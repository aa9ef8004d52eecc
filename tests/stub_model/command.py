"""The stateless mode: a JSON command inside the user's text says what the stub answers, and in which order.

Keys of a command, all optional (at least one of them makes a JSON object a command):

- ``calls``: how many tool calls come before the text, one a request, or all in one request with ``"parallel": true``
- ``name``, ``arguments``: of each call; by default read_file of /project/file.txt. ``{n}`` inside a string argument
  becomes the call's number, counted from 0
- ``chunks``: number of text deltas of the last answer, ``"0 "``, ``"1 "`` and so on; ``text``: the whole text instead
  (one delta)
- ``thoughts``: how many reasoning deltas come before the text
- ``delay_s``, ``chunk_delay_s``: think time of each request, pause before each delta
- ``finish``: finish_reason of the last answer; ``then``: how it ends (`Reply.then`); ``hang``: short for
  ``"then": "hang"``
- ``error``: HTTP status of the last answer, with ``message`` and ``code``

Which step it is: the number of assistant messages after the last user message.
"""

from __future__ import annotations

import json
from typing import Any

from tests.stub_model.steps import Call, Failure, Json, Recorded, Reply, Step, user_text

_KEYS = frozenset({"calls", "chunks", "text", "thoughts", "error", "hang", "then", "finish", "delay_s"})


def command_in(text: str) -> Json | None:
    """The last outermost JSON object in `text` that is a command."""
    decoder = json.JSONDecoder()
    found, start = None, text.find("{")
    while start >= 0:
        try:
            value, end = decoder.raw_decode(text, start)
        except ValueError:
            end = start + 1
        else:
            found = value if not _KEYS.isdisjoint(value) else found
        start = text.find("{", end)
    return found


def position_of(request: Recorded) -> tuple[str, int]:
    """The last user message's text, and how many answers of the model came after it."""
    answers = 0
    for message in reversed(request.messages):
        if message.get("role") == "user":
            return user_text(message), answers
        answers += message.get("role") == "assistant"
    return "", answers


def reply_to_command(request: Recorded) -> Step:
    """The step that the request's own command asks for; without one, an answer that repeats the prompt's beginning."""
    text, position = position_of(request)
    command = command_in(text)
    if command is None:
        return Reply(text=[f"You said: {text[:60]}"])
    delay_s = float(command.get("delay_s", 0))
    count = int(command.get("calls", 0))
    parallel = bool(command.get("parallel", False))
    if position < (min(count, 1) if parallel else count):
        numbers = range(count) if parallel else range(position, position + 1)
        return Reply(calls=[_call(command, number) for number in numbers], delay_s=delay_s)
    return _last(command, delay_s)


def _call(command: Json, number: int) -> Call:
    name = str(command.get("name", "read_file"))
    arguments: Json | str = command.get("arguments", {"path": "/project/file.txt"})
    if isinstance(arguments, str):
        return Call(name, arguments)
    return Call(name, {key: _numbered(value, number) for key, value in arguments.items()})


def _numbered(value: Any, number: int) -> Any:
    return value.replace("{n}", str(number)) if isinstance(value, str) else value


def _last(command: Json, delay_s: float) -> Step:
    if "error" in command:
        message = str(command.get("message", "the stub was told to fail"))
        return Failure(int(command["error"]), message, command.get("code"), delay_s=delay_s)
    numbered = [f"{number} " for number in range(int(command.get("chunks", 1)))]
    chunks = [str(command["text"])] if "text" in command else numbered
    return Reply(
        text=chunks,
        thoughts=[f"thought {number} " for number in range(int(command.get("thoughts", 0)))],
        finish=command.get("finish"),
        then="hang" if command.get("hang") else command.get("then", "end"),
        delay_s=delay_s,
        chunk_delay_s=float(command.get("chunk_delay_s", 0)),
    )


def step_from_json(value: Json) -> Step:
    """A step of a script file: the fields of `Failure` when it has `status`, else those of `Reply`."""
    if "status" in value:
        return Failure(**value)
    fields = dict(value)
    fields["calls"] = [Call(**call) for call in fields.get("calls", [])]
    return Reply(**fields)
