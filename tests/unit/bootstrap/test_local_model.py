"""A model named `gguf:PATH`: its engine, its file whatever it is called, and how much it reads at once."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_mock import MockerFixture

from punie.bootstrap.engines import Engines, sized_by
from punie.bootstrap.settings.settings import Settings
from punie.domain.model.context_sizes import known_context_tokens
from punie.domain.tools.disclosure import DEFAULT_CONTEXT_TOKENS
from punie_gguf import engine as gguf_engine
from punie_gguf.engine import LocalModelEngine, model_path
from tests.tiny_gguf import tiny_model


def test_its_engine_is_made_without_a_look_at_the_file_and_shares_the_memory_of_providers_models() -> None:
    engine = Engines().get("gguf:/nowhere/m.gguf")
    assert isinstance(engine, LocalModelEngine)
    assert engine.name == Engines().get("openai-chat:m").name


@pytest.mark.parametrize("name", ["gguf:~/m.gguf", "gguf:./m.gguf", "gguf:sub/../m.gguf", "gguf:link.gguf"])
def test_a_file_is_the_same_whatever_it_is_called(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "link.gguf").symlink_to(tmp_path / "m.gguf")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert model_path(name) == str((tmp_path / "m.gguf").resolve())


@pytest.mark.parametrize("name", ["gguf:", "gguf:~nobody-here/m", "gguf:a\0b", "gguf:\udce4"])
def test_a_name_that_can_be_no_file_breaks_nothing(name: str) -> None:
    engine = Engines().get(name)
    assert isinstance(engine, LocalModelEngine)
    assert engine.context_tokens() is None
    assert known_context_tokens(name) is None


def test_how_much_it_reads_is_in_the_file_and_not_in_its_name(tmp_path: Path, mocker: MockerFixture) -> None:
    mocker.patch.object(gguf_engine, "free_bytes", return_value=None)
    path = tiny_model(tmp_path / "qwen-gpt-5.gguf", context_tokens=6000)
    for name, known, used in (
        (f"gguf:{path}", 6000, 6000),
        (f"gguf:{tmp_path}/qwen-of-yesterday.gguf", None, DEFAULT_CONTEXT_TOKENS),
    ):
        sized = sized_by(Engines().get(name), Settings({"model": name}))
        assert (sized.context_tokens, sized.disclosure.context_tokens) == (known, used)
