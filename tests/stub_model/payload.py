"""Steps as Chat Completions JSON: stream deltas and whole answers."""

from __future__ import annotations

from collections.abc import Iterator

from tests.stub_model.steps import Call, Json, Reply


def _frame(body: Json, choices: list[Json], kind: str = "chat.completion.chunk") -> Json:
    return {"id": "chatcmpl-stub", "object": kind, "created": 1, "model": body.get("model", "stub"), "choices": choices}


def _numbered(step: Reply, body: Json) -> list[tuple[str, Call]]:
    """Each call with its id; ids are unique within a conversation and the same whenever it is replayed."""
    turn = sum(1 for message in body["messages"] if message.get("role") == "assistant")
    return [(call.id or f"call_{turn}_{index}", call) for index, call in enumerate(step.calls)]


def deltas(step: Reply, body: Json) -> Iterator[Json]:
    def delta(value: Json) -> Json:
        return _frame(body, [{"index": 0, "delta": value, "finish_reason": None}])

    yield delta({"role": "assistant", "content": ""})
    for thought in step.thoughts:
        yield delta({"reasoning_content": thought})
    for text in step.text:
        yield delta({"content": text})
    for index, (call_id, call) in enumerate(_numbered(step, body)):
        function = {"name": call.name, "arguments": ""}
        yield delta({"tool_calls": [{"index": index, "id": call_id, "type": "function", "function": function}]})
        arguments = call.arguments_text()
        size = max(1, -(-len(arguments) // max(1, call.pieces)))
        for start in range(0, len(arguments), size):
            yield delta({"tool_calls": [{"index": index, "function": {"arguments": arguments[start : start + size]}}]})


def _usage(step: Reply) -> Json | None:
    if step.usage is None:
        return None
    prompt, completion = step.usage
    return {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": prompt + completion}


def ending(step: Reply, body: Json) -> Iterator[Json]:
    yield _frame(body, [{"index": 0, "delta": {}, "finish_reason": step.finish_reason()}])
    usage = _usage(step)
    if usage is not None:
        yield {**_frame(body, []), "usage": usage}


def completion(step: Reply, body: Json) -> Json:
    message: Json = {"role": "assistant", "content": "".join(step.text) or None}
    if step.thoughts:
        message["reasoning_content"] = "".join(step.thoughts)
    if step.calls:
        message["tool_calls"] = [
            {"id": call_id, "type": "function", "function": {"name": call.name, "arguments": call.arguments_text()}}
            for call_id, call in _numbered(step, body)
        ]
    choice = {"index": 0, "message": message, "finish_reason": step.finish_reason()}
    return {**_frame(body, [choice], "chat.completion"), "usage": _usage(step)}
