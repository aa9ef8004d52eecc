"""The engine of a model named `gguf:PATH`: llama.cpp's server from one adapter, whoever speaks with it from another."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from punie.adapters.pydantic_ai.engine import PydanticAiEngine
from punie.adapters.pydantic_ai.settings import ModelSettings
from punie.domain.errors import EngineError
from punie_gguf.engine import LocalModelEngine
from punie_gguf.gguf import read_model_file
from punie_gguf.memory import free_bytes
from punie_gguf.server import ModelServer

if TYPE_CHECKING:
    from punie.adapters.pydantic_ai.stepwise.model import StepwiseModel

GGUF_PREFIX = "gguf:"


def local_engine(model: str, server: ModelServer | None = None) -> LocalModelEngine:
    """The engine of that model; cheap. `server` stands in for the file's own, for tests."""
    path = model_path(model)
    serves = ModelServer(path) if server is None else server

    def reach() -> ModelSettings:
        serving = serves.serving
        return ModelSettings() if serving is None else ModelSettings(serving.base_url, serving.key)

    def build() -> StepwiseModel:
        from punie.adapters.pydantic_ai.stepwise.model import StepwiseModel

        return StepwiseModel(Path(path).name, reach)

    return LocalModelEngine(serves, PydanticAiEngine(model, build=build))


def model_path(model: str) -> str:
    """The file of a model by its name: the same for every name of it."""
    path = os.path.expanduser(model.removeprefix(GGUF_PREFIX))  # noqa: PTH111 - leaves a home that is not known as it is
    return os.path.realpath(path) if "\0" not in path else path


def local_context_tokens(model: str) -> int | None:
    """How long a conversation the model will take, by its file's head; None where there is no such file."""
    try:
        return read_model_file(model_path(model)).context_within(free_bytes())
    except EngineError:
        return None
