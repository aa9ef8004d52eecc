"""Which engine a model's name means (INTERFACES.md section 2)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from attrs import define, field

from punie.adapters.pydantic_ai.engine import PydanticAiEngine
from punie.adapters.pydantic_ai.settings import ModelSettings
from punie.bootstrap.plugins import PlugIns
from punie.bootstrap.settings.values import EngineChoice
from punie.domain.model.choice import DIRECT, Effort
from punie.ports.engine import Engine

if TYPE_CHECKING:
    from punie_gguf.engine import LocalModelEngine
    from punie_openai_agents.engine import OpenAiAgentsEngine

SCRIPT_PREFIX = "script:"
GGUF_PREFIX = "gguf:"

HOW_TO_CHOOSE = "`punie setup model` in a terminal asks for a model and its key, and tries them"
NOTICE = (
    f"No model is in use, so your words are commands (try /help). {HOW_TO_CHOOSE}.\n"
    "Or set PUNIE_MODEL, or model in the settings, to a name such as openai-chat:gpt-5, and its key in the "
    "environment.\n"
    "A session that is opened after that has the model; `punie doctor` says what is missing."
)


@runtime_checkable
class ProviderEngine(Protocol):
    """What the engines for `provider:name` have beside the port: a library to load, and a provider to ask."""

    def load(self) -> object:
        """Load the library and set up the model; for a thread of its own. Raises `EngineError`."""
        ...

    async def ready(self) -> object:
        """As `load`, in a thread of its own."""
        ...

    @property
    def efforts(self) -> tuple[Effort, ...]:
        """How hard the model can be told to think; empty before it is loaded."""
        ...

    async def siblings(self) -> tuple[str, ...]:
        """The models that its provider offers beside it. Raises `EngineError`."""
        ...

    async def ask_once(self) -> str:
        """The model's answer to one small request, which may be empty. Raises `EngineError`."""
        ...

    async def aclose(self) -> None:
        """Close what sessions shared."""
        ...


def make_engine(
    model: str | None,
    plug_ins: PlugIns | None = None,
    reach: Callable[[str], ModelSettings] | None = None,
    choice: EngineChoice = EngineChoice.PYDANTIC_AI,
) -> Engine:
    """The engine for a model's name; cheap, whatever library it will need. No name means no model.

    `reach` gives what is stored for a model of that name, when its engine is loaded; `choice` is who runs models of
    providers. Raises `EngineError` where the name is that of a plug-in that cannot be used.
    """
    if model is None or model == DIRECT:
        from punie.adapters.direct.engine import DirectEngine

        return DirectEngine(NOTICE)
    if model.startswith(SCRIPT_PREFIX):
        from punie.adapters.scripted.engine import ScriptedEngine

        return ScriptedEngine(model.removeprefix(SCRIPT_PREFIX))
    plugged_in = None if plug_ins is None else plug_ins.engine(model)
    if plugged_in is not None:
        return plugged_in
    return provider_engine(model, reach, choice)


def provider_engine(
    model: str,
    reach: Callable[[str], ModelSettings] | None = None,
    choice: EngineChoice = EngineChoice.PYDANTIC_AI,
) -> PydanticAiEngine | OpenAiAgentsEngine:
    """The engine for a provider's model, whatever it is called; as `make_engine`."""
    stored = None if reach is None else partial(reach, model)
    if choice is EngineChoice.OPENAI_AGENTS:
        return _agents_engine(model, stored)
    return PydanticAiEngine(model, reach=stored)


def _agents_engine(model: str, stored: Callable[[], ModelSettings] | None) -> OpenAiAgentsEngine:
    from punie_openai_agents.engine import OpenAiAgentsEngine
    from punie_openai_agents.settings import Connection

    def reach() -> Connection:
        settings = ModelSettings() if stored is None else stored()
        return Connection(settings.base_url, settings.api_key)

    return OpenAiAgentsEngine(model, reach=reach)


@define
class Engines:
    """The engines in use, one a model; lives as long as the process, so that sessions share an engine's library."""

    plug_ins: PlugIns | None = None
    reach: Callable[[str], ModelSettings] | None = None
    _by_model: dict[tuple[str | None, EngineChoice], Engine] = field(factory=dict, init=False)
    _by_file: dict[str, LocalModelEngine] = field(factory=dict, init=False)

    def get(self, model: str | None, choice: EngineChoice = EngineChoice.PYDANTIC_AI) -> Engine:
        """The engine of that model, made once. Never another one in its place (ruling R-15)."""
        key = (model, choice)
        if key not in self._by_model:
            if model is not None and model.startswith(GGUF_PREFIX):
                self._by_model[key] = self._of_file(model)
            else:
                self._by_model[key] = make_engine(model, self.plug_ins, self.reach, choice)
        return self._by_model[key]

    def _of_file(self, model: str) -> LocalModelEngine:
        """One engine a file, whatever it is called: its weights are in the memory once."""
        from punie.bootstrap.local_model import local_engine, model_path

        path = model_path(model)
        if path not in self._by_file:
            self._by_file[path] = local_engine(model)
        return self._by_file[path]

    def made(self, model: str | None, choice: EngineChoice = EngineChoice.PYDANTIC_AI) -> Engine | None:
        """The engine of that model, where somebody asked for it before."""
        return self._by_model.get((model, choice))

    def load(self, model: str | None, choice: EngineChoice = EngineChoice.PYDANTIC_AI) -> None:
        """Load what the model's engine needs; for a thread of its own. Raises `EngineError` for a bad set-up."""
        engine = self.get(model, choice)
        if isinstance(engine, ProviderEngine):
            engine.load()
        for local in self._by_file.values():
            if local is engine:
                local.load()

    async def aclose(self) -> None:
        """Close what sessions shared; they must be closed before."""
        for engine in self._by_model.values():
            if isinstance(engine, ProviderEngine):
                await engine.aclose()
        for local in self._by_file.values():
            await local.aclose()
