"""The Agents SDK engine's own failures; and what must not be loaded, traced or printed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import anyio
import pytest

from punie.domain.errors import EngineError
from punie.domain.session.turn import StopReason
from punie.mechanics.installation import install_line
from punie_openai_agents.engine import OpenAiAgentsEngine
from tests.fakes.engine_side import FakeEventSink, FakeToolDoor
from tests.integration import engine_bench
from tests.integration.engine_bench import PLACES, RESPONSES
from tests.integration.test_engine_errors import TURN, error_of
from tests.stub_openai import Reply, StubOpenAI

pytestmark = pytest.mark.anyio

talking = partial(engine_bench.talking, PLACES["openai_agents-chat"])

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("model", "kind", "says"),
    [
        ("anthropic:claude-sonnet-4-5", "configuration", 'engine = "pydantic-ai"'),
        ("google:gemini-2.5-pro", "configuration", "OpenAI's protocols only"),
        ("nope:x", "configuration", "openrouter:"),
        ("openai:", "configuration", "openai-chat:"),
        ("gpt-4o", "configuration", "openai-chat:"),
        ("", "configuration", "openai-chat:"),
    ],
)
async def test_a_model_that_it_cannot_run_says_what_to_choose(model: str, kind: str, says: str) -> None:
    error = await error_of(OpenAiAgentsEngine(model))
    assert error.kind == kind
    assert says in str(error)


@pytest.mark.parametrize(
    ("model", "address_from", "key"),
    [("openai-chat:stub", "OPENAI_BASE_URL", "OPENAI_API_KEY"), ("ollama:stub", "OLLAMA_BASE_URL", "OLLAMA_API_KEY")],
)
async def test_the_providers_own_variables_are_honoured(
    model: str, address_from: str, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with StubOpenAI([Reply(text=["hello"]), Reply(text=["hello"])]) as stub:
        monkeypatch.setenv(address_from, stub.base_url)
        for given, sent in (("from-the-environment", "Bearer from-the-environment"), ("", "Bearer none")):
            monkeypatch.setenv(key, given)
            engine, sink = OpenAiAgentsEngine(model), FakeEventSink()
            assert await engine.open("s").run(TURN, tools=FakeToolDoor(), events=sink) is StopReason.END_TURN
            await engine.aclose()
            assert stub.requests[-1].headers["authorization"] == sent
            assert sink.text == "hello"


@pytest.mark.parametrize(
    ("event", "kind", "says"),
    [
        ({"type": "error", "code": "rate_limit_exceeded", "message": "slow", "param": None}, "rate_limit", "again"),
        ({"type": "error", "code": "server_error", "message": "oh", "param": None}, "internal", "remembered"),
        ({"type": "error", "code": None, "message": "odd thing", "param": None}, "internal", "odd thing"),
        ({"type": "error", "code": "context_length_exceeded", "message": "", "param": None}, "context", "longer"),
    ],
)
async def test_an_answer_that_turns_into_an_error_says_why(
    event: dict[str, object], kind: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tests.stub_model.server.response_events", lambda _step, _body: iter([event]))
    async with talking([Reply()], model=RESPONSES) as talk:
        with pytest.raises(EngineError) as caught:
            await talk.say("x")
    assert caught.value.kind == kind
    assert says in str(caught.value)


def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("library", "models"):
        monkeypatch.delitem(sys.modules, f"punie_openai_agents.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "agents", None)
    with pytest.raises(EngineError) as caught:
        OpenAiAgentsEngine("openai:gpt-5").load()
    assert install_line("openai-agents") in str(caught.value)
    assert caught.value.kind == "configuration"


def test_an_engine_is_made_and_opened_without_the_sdk() -> None:
    code = (
        "import sys\n"
        "from punie_openai_agents.engine import OpenAiAgentsEngine\n"
        "OpenAiAgentsEngine('openai:x').open('s', b'{}').snapshot()\n"
        "print([name for name in ('pydantic', 'agents', 'openai', 'httpx2', 'mcp') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\n"


SPYING = """
import json, sys
from anyio import run
import httpx2
from punie_openai_agents.engine import OpenAiAgentsEngine
from punie.domain.model.provider import ModelSettings
from punie.domain.values.content import Prompt
from punie.domain.session.turn import Turn
from tests.fakes.engine_side import FakeEventSink, FakeToolDoor
from tests.stub_openai import Call, Failure, Reply, StubOpenAI

hosts = set()
send = httpx2.Client.send, httpx2.AsyncClient.send
def spy(self, request, **kwargs):
    hosts.add(request.url.host)
    return send[0](self, request, **kwargs)
async def spy_too(self, request, **kwargs):
    hosts.add(request.url.host)
    return await send[1](self, request, **kwargs)
httpx2.Client.send, httpx2.AsyncClient.send = spy, spy_too

async def main():
    down = [Failure(500, headers={"retry-after-ms": "1"})] * 3
    with StubOpenAI([Reply(calls=[Call("x")]), Reply(text=["ok"]), *down]) as stub:
        engine = OpenAiAgentsEngine("openai-chat:stub", ModelSettings(stub.base_url, "k"))
        session = engine.open("s")
        for number in range(2):
            turn = Turn(f"t{number}", "s", Prompt.of_text("x"))
            try:
                await session.run(turn, tools=FakeToolDoor(), events=FakeEventSink())
            except Exception as error:
                print(type(error).__name__)
        await engine.aclose()

run(main)
import agents.tracing
agents.tracing.flush_traces()
from agents.tracing.setup import get_trace_provider
provider = get_trace_provider()
print(json.dumps(sorted(hosts)))
print(provider._disabled, len(provider._multi_processor._processors))
"""


def test_nothing_is_traced_uploaded_or_printed() -> None:
    """Also where the environment would have the SDK do so, and after a failure."""
    keys = {"OPENAI_API_KEY": "sk-would-upload", "OPENAI_AGENTS_DISABLE_TRACING": "0"}
    done = subprocess.run(
        [sys.executable, "-c", SPYING], capture_output=True, text=True, env=os.environ | keys, cwd=ROOT, check=True
    )
    assert done.stderr == ""
    name, hosts, tracing = done.stdout.splitlines()
    assert name == "EngineError"
    assert json.loads(hosts) == ["127.0.0.1"]
    assert tracing == "True 0"


async def test_a_cancel_of_the_loading_leaves_an_engine_that_works() -> None:
    async with talking([Reply(text=["hello"])], loaded=False) as talk:
        with anyio.move_on_after(0):
            await talk.say("x")
        assert await talk.say("y") is StopReason.END_TURN
        assert talk.sink.text == "hello"
