"""Which engine a model's name means."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from attrs import define, field

from punie.adapters.pydantic_ai.engine import PydanticAiEngine
from punie.bootstrap.plugins import PlugIns, installed_engines
from punie.bootstrap.settings.values import EngineChoice
from punie.domain.model.choice import DIRECT
from punie.domain.model.place import ModelSettings
from punie.ports.engine import Engine, ModelEngine

SCRIPT_PREFIX = "script:"

HOW_TO_CHOOSE = "`punie setup model` in a terminal asks for a model and its key, and tries them"
NOTICE = (
    f"No model is in use, so your words are commands (try /help). {HOW_TO_CHOOSE}.\n"
    "Or set PUNIE_MODEL, or model in the settings, to a name such as openai-chat:gpt-5, and its key in the "
    "environment.\n"
    "A session that is opened after that has the model; `punie doctor` says what is missing."
)


def make_engine(
    model: str | None,
    plug_ins: PlugIns | None = None,
    reach: Callable[[str], ModelSettings] | None = None,
    choice: EngineChoice = EngineChoice.PYDANTIC_AI,
) -> Engine:
    """The engine for a model's name; cheap, whatever library it will need. No name means no model.

    Without `plug_ins` the installed ones are looked up. `reach` gives what is stored for a model of that name, when its
    engine is loaded; `choice` names the engine that runs models of providers. Raises `EngineError` where a plug-in is
    missing or cannot be used.
    """
    if model is None or model == DIRECT:
        from punie.adapters.direct.engine import DirectEngine

        return DirectEngine(NOTICE)
    if model.startswith(SCRIPT_PREFIX):
        from punie.adapters.scripted.engine import ScriptedEngine

        return ScriptedEngine(model.removeprefix(SCRIPT_PREFIX))
    found = PlugIns(engines=installed_engines()) if plug_ins is None else plug_ins
    made = found.engine(model)
    if made is not None:
        return made
    stored = None if reach is None else partial(reach, model)
    if choice is EngineChoice.PYDANTIC_AI:
        return PydanticAiEngine(model, reach=stored)
    made = found.chosen(choice.value, model)
    if stored is not None and isinstance(made, ModelEngine):
        made.reach_by(stored)
    return made


@define
class Engines:
    """The engines in use, one a model; lives as long as the process, so that sessions share an engine's library."""

    plug_ins: PlugIns | None = None
    reach: Callable[[str], ModelSettings] | None = None
    _by_model: dict[tuple[str | None, EngineChoice], Engine] = field(factory=dict, init=False)

    def get(self, model: str | None, choice: EngineChoice = EngineChoice.PYDANTIC_AI) -> Engine:
        """The engine of that model, made once; engines that are equal are one. Never another one in its place."""
        key = (model, choice)
        if key not in self._by_model:
            made = make_engine(model, self.plug_ins, self.reach, choice)
            self._by_model[key] = next((engine for engine in self._by_model.values() if engine == made), made)
        return self._by_model[key]

    def made(self, model: str | None, choice: EngineChoice = EngineChoice.PYDANTIC_AI) -> Engine | None:
        """The engine of that model, where it was asked for before."""
        return self._by_model.get((model, choice))

    def load(self, model: str | None, choice: EngineChoice = EngineChoice.PYDANTIC_AI) -> None:
        """Load what the model's engine needs; for a thread of its own. Raises `EngineError` for a bad set-up."""
        engine = self.get(model, choice)
        if isinstance(engine, ModelEngine):
            engine.load()

    async def aclose(self) -> None:
        """Close what sessions shared; they must be closed before."""
        for engine in self._by_model.values():
            if isinstance(engine, ModelEngine):
                await engine.aclose()
