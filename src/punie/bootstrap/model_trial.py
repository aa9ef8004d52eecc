"""Whether the configured model can be used: one small request, its cause where it fails, and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
from attrs import frozen

from punie.adapters.pydantic_ai.settings import ModelSettings
from punie.bootstrap.engines import GGUF_PREFIX, HOW_TO_CHOOSE, SCRIPT_PREFIX, provider_engine
from punie.bootstrap.plugins import PlugIns
from punie.bootstrap.settings.values import EngineChoice
from punie.domain.errors import EngineError, EngineErrorKind
from punie.domain.model.choice import DIRECT

LIMIT_S = 30.0


@frozen
class Trial:
    """How it went; lives as long as whoever reads it. `kind` is that of `EngineErrorKind`, None where all is well."""

    ok: bool
    detail: str
    next_step: str = ""
    kind: str | None = None


async def try_model(
    model: str | None,
    reach: Callable[[str], ModelSettings],
    plug_ins: PlugIns | None = None,
    limit_s: float = LIMIT_S,
    choice: EngineChoice = EngineChoice.PYDANTIC_AI,
) -> Trial:
    """Try the model of that name, for `limit_s` at most; nothing is raised. `reach` gives stored keys, and may block.

    Without a model nobody is asked, nor for a script, a file of weights, and an engine that was installed beside Punie.
    """
    if model is None or model == DIRECT:
        return Trial(True, "no model is in use: prompts are commands", HOW_TO_CHOOSE)
    if model.startswith(SCRIPT_PREFIX):
        return await anyio.to_thread.run_sync(_script, model.removeprefix(SCRIPT_PREFIX))
    if model.startswith(GGUF_PREFIX):
        return await anyio.to_thread.run_sync(_file, model, abandon_on_cancel=True)
    try:
        plugged_in = None if plug_ins is None else plug_ins.engine(model)
    except EngineError as error:
        return _failed(error)
    if plugged_in is not None:
        return Trial(True, f"{model} is an engine that was installed beside Punie; it was not tried")
    engine = provider_engine(model, reach, choice)
    try:
        with anyio.fail_after(limit_s):
            await engine.ask_once()
    except EngineError as error:
        return _failed(error)
    except TimeoutError:
        cause = f"{model} did not answer within {limit_s:g} seconds."
        return Trial(False, cause, "Check the network; a local server may still be loading it.", _TIMEOUT)
    finally:
        with anyio.move_on_after(1, shield=True):
            await engine.aclose()
    return Trial(True, f"{model} answers")


_TIMEOUT = EngineErrorKind.TIMEOUT.value


def _failed(error: EngineError) -> Trial:
    return Trial(False, error.cause, error.next_step, error.kind)


def _file(model: str) -> Trial:
    from punie.bootstrap.local_model import local_engine

    try:
        local_engine(model).load()
    except EngineError as error:
        return _failed(error)
    return Trial(True, f"{model} can be used; it is loaded at the first prompt")


def _script(name: str) -> Trial:
    from punie.adapters.scripted.script import ScriptError, load_script

    try:
        load_script(Path(name))
    except ScriptError as error:
        kind = EngineErrorKind.CONFIGURATION.value
        return Trial(False, f"the script {name} cannot be used: {error}", "Mend it, or choose another model.", kind)
    return Trial(True, f"the script {name} can be played")
