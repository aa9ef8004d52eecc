"""A server of one's own, by each engine: its address alone is asked, without a key or address of the maker's."""

from __future__ import annotations

import pytest

from punie.adapters.pydantic_ai.library import build_model
from punie.bootstrap.engines import PydanticAiEngine
from punie.domain.model.provider import ModelSettings
from punie.ports.engine import ModelEngine
from punie_openai_agents.engine import OpenAiAgentsEngine
from tests.stub_openai import Reply, StubOpenAI

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("engine", [PydanticAiEngine, OpenAiAgentsEngine])
@pytest.mark.parametrize("key", [None, "sk-of-the-server"])
async def test_no_variable_of_the_maker_is_read_for_it(
    engine: type[PydanticAiEngine | OpenAiAgentsEngine], key: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-maker")
    with StubOpenAI([Reply()] * 2) as maker, StubOpenAI([Reply(text=["ready"])] * 2, models=("m", "n")) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", maker.base_url)
        made: ModelEngine = engine("own:m", ModelSettings(server.base_url, key, protocol="openai-chat"))
        assert await made.ask_once() == "ready"
        assert await made.siblings() == ("own:m", "own:n"), "they keep the server's name"
        await made.aclose()
        assert server.requests[0].headers["authorization"] == f"Bearer {key or 'none'}"
        assert server.requests[0].body["model"] == "m"
        assert maker.requests == []


def test_another_protocol_is_spoken_by_its_own_library() -> None:
    model = build_model("proxy:claude", ModelSettings("http://127.0.0.1:9/", None, protocol="anthropic"))
    assert (model.system, model.model_name) == ("anthropic", "claude")
