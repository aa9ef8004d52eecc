"""Which engine a model's name means (INTERFACES.md section 2)."""

from __future__ import annotations

from attrs import define, field

from punie.adapters.pydantic_ai.engine import PydanticAiEngine
from punie.bootstrap.plugins import PlugIns
from punie.domain.model_choice import DIRECT
from punie.ports.engine import Engine

SCRIPT_PREFIX = "script:"

NOTICE = (
    "No model is in use, so your words are commands (try /help). To use a model, set PUNIE_MODEL, or model in the "
    "settings, to a name such as openai-chat:gpt-5 and put its key into the environment."
)


def make_engine(model: str | None, plug_ins: PlugIns | None = None) -> Engine:
    """The engine for a model's name; cheap, whatever library it will need. No name means no model.

    Raises `EngineError` where the name is that of a plug-in that cannot be used.
    """
    if model is None or model == DIRECT:
        from punie.adapters.direct.engine import DirectEngine

        return DirectEngine(NOTICE)
    if model.startswith(SCRIPT_PREFIX):
        from punie.adapters.scripted.engine import ScriptedEngine

        return ScriptedEngine(model.removeprefix(SCRIPT_PREFIX))
    plugged_in = None if plug_ins is None else plug_ins.engine(model)
    return PydanticAiEngine(model) if plugged_in is None else plugged_in


@define
class Engines:
    """The engines in use, one a model; lives as long as the process, so that sessions share an engine's library."""

    plug_ins: PlugIns | None = None
    _by_model: dict[str | None, Engine] = field(factory=dict, init=False)

    def get(self, model: str | None) -> Engine:
        """The engine of that model, made once. Never another one in its place (ruling R-15)."""
        if model not in self._by_model:
            self._by_model[model] = make_engine(model, self.plug_ins)
        return self._by_model[model]

    def made(self, model: str | None) -> Engine | None:
        """The engine of that model, where somebody asked for it before."""
        return self._by_model.get(model)

    def load(self, model: str | None) -> None:
        """Load what the model's engine needs; for a thread of its own. Raises `EngineError` for a bad set-up."""
        engine = self.get(model)
        if isinstance(engine, PydanticAiEngine):
            engine.load()

    async def aclose(self) -> None:
        """Close what sessions shared; they must be closed before."""
        for engine in self._by_model.values():
            if isinstance(engine, PydanticAiEngine):
                await engine.aclose()
