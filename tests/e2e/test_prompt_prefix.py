"""A provider's prompt cache holds: each request of a long turn begins with the bytes of the one before."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.test_disclosure import SEARCH, SLOTS, through
from tests.fakes.sixty_tools import sixty_entries
from tests.stub_openai import Call, Recorded, Reply, StubOpenAI

pytestmark = pytest.mark.anyio

LONG_S = 240.0
REQUESTS = 50
FULL_AT = 30
ASKED = "Write the summary from which you go on"
WIRES = {
    "chat": ("openai-chat:stub", {}),
    "responses": ("openai:gpt-5", {}),
    "responses of the agents engine": ("openai:gpt-5", {"PUNIE_ENGINE": "openai-agents"}),
    "chat of the agents engine": ("openai-chat:stub", {"PUNIE_ENGINE": "openai-agents"}),
    "anthropic": ("anthropic:claude-haiku-4-5", {"PUNIE_TOOLS_DISCLOSURE": "lines"}),
}


def packed(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def beginning(request: Recorded) -> bytes:
    """The bytes of a request up to its last message."""
    key = "messages" if "messages" in request.body else "input"
    whole = request.raw.decode()
    conversation = packed(request.messages)
    assert f'"{key}":{conversation}' in whole, "the conversation is written as it is compared"
    head = whole[: whole.index(f'"{key}":')]
    return f'{head}"{key}":{packed(request.messages[:-1])[:-1]}'.encode()


def beside(request: Recorded) -> dict[str, Any]:
    """Instructions, tools and settings: all but the conversation and the bound of a summary's length."""
    left_out = {"messages", "input", "max_tokens", "max_completion_tokens", "max_output_tokens"}
    return {key: value for key, value in request.body.items() if key not in left_out}


def step(path: str, number: int) -> Reply:
    calls = [
        Call(SEARCH, {"query": "when are Ann and Bob both free"}),
        Call(*through("agenda_find_free_slots", **SLOTS)),
        Call("read_file", {"path": path}),
        Call("chat_add_reaction", {"channel": "c", "message_id": "m", "emoji": "+1"}),
        Call(*through("browser_navigate", wrong=True)),
    ]
    if number == REQUESTS:
        return Reply(text=["Done."])
    usage = (11_000, 50) if number == FULL_AT else (1_000 + number, 5)
    thoughts = ["I look."] if number % 3 == 0 else []
    return Reply(text=["Next. "], thoughts=thoughts, calls=[calls[number % 5]], usage=usage)


@pytest.mark.parametrize("wire", WIRES)
async def test_each_of_fifty_requests_begins_with_the_one_before_and_the_tools_are_equal(
    spawn_ide: Spawn, project: Path, wire: str
) -> None:
    model, more = WIRES[wire]
    (project / "notes.txt").write_text("notes\n" * 40, "utf-8")
    played = 0

    def play(request: Recorded) -> Reply:
        nonlocal played
        if ASKED in packed(request.messages[-1]):
            return Reply(text=["Slots were looked for."])
        played += 1
        return step(str(project / "notes.txt"), played)

    with StubOpenAI([play] * (REQUESTS + 5)) as stub:
        env = {**stub.environment(), **stub.anthropic_environment(), "PUNIE_CONTEXT_TOKENS": "12000", **more}
        async with spawn_ide(model=model, env=env) as ide:
            ide.person.always("allow_once")
            ide.catalogue.offer(*sixty_entries(), extends=True)
            turn = await ide.prompt(await ide.open(project), "Look for slots.", timeout_s=LONG_S)
            assert turn.text.endswith("Done.")
            assert len(ide.catalogue.calls) >= REQUESTS // 5
        requests = stub.requests
    assert played == REQUESTS
    summaries = [number for number, request in enumerate(requests) if ASKED in packed(request.messages[-1])]
    assert len(summaries) == 1, "the turn outgrew the context once"
    assert all(beside(request) == beside(requests[0]) for request in requests)
    broken = [
        number
        for number in range(1, len(requests))
        if not requests[number].raw.startswith(beginning(requests[number - 1]))
    ]
    assert set(broken) <= {summaries[0], summaries[0] + 1}, "only what is asked shorter begins otherwise"
    asked = requests[summaries[0]]
    shared = len(asked.messages) - 1
    assert asked.messages[:shared] == requests[summaries[0] - 1].messages[:shared]
