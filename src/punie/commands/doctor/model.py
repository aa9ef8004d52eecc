"""The doctor's look at the model: one small request, and where it fails the cause and what to do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from punie.bootstrap.credentials import Credentials
from punie.bootstrap.engines import SCRIPT_PREFIX, Engines
from punie.bootstrap.model_trial import LIMIT_S, try_model
from punie.bootstrap.plugins import PlugIns, scan
from punie.bootstrap.settings.settings import Settings
from punie.bootstrap.warm_up import WarmUp
from punie.commands.doctor.report import Check
from punie.commands.doctor.side_by_side import Case
from punie.domain.errors import EngineError
from punie.domain.model.choice import DIRECT

MODEL_LIMIT_S = LIMIT_S + 10
"""The trial has a bound of its own; loading its library comes before."""


_ANOTHER = "Choose another model: punie setup model."


async def model(case: Case) -> Sequence[Check]:
    """The configured model; without one that is how it is, and how to have one."""
    if case.traced is None:
        return [Check("model", ok=True, detail="not asked: the settings do not load")]
    settings = case.traced.settings
    source = settings.origins.get("model", "")
    said = f" (named by {source})" if source else ""
    reach = Credentials.of(case.environ).reach
    name = settings.model
    plug_ins = PlugIns()
    if name is not None and name != DIRECT and not name.startswith(SCRIPT_PREFIX):
        plug_ins = await _plug_ins(case)
        if case.offline:
            trouble = await _set_up(name, settings, Engines(plug_ins, reach))
            if trouble is None:
                return [Check("model", ok=True, detail=f"{name} is set up{said}, and was not asked (--offline)")]
            detail = f"{trouble.cause.rstrip('.')}{said}"
            return [Check("model", ok=False, detail=detail, fix=trouble.next_step or _ANOTHER)]
    trial = await try_model(name, reach, plug_ins, choice=settings.engine)
    if not trial.asked:
        why = "it is a file of this machine"
        return [Check("model", ok=True, detail=f"{name} is set up{said}, and was not asked ({why})")]
    if trial.ok:
        return [Check("model", ok=True, detail=f"{trial.detail}{said}. {trial.next_step}".removesuffix(". "))]
    return [Check("model", ok=False, detail=f"{trial.detail.rstrip('.')}{said}", fix=trial.next_step or _ANOTHER)]


async def _plug_ins(case: Case) -> PlugIns:
    found = await WarmUp({"plug-ins": lambda: scan(case.log)}).result("plug-ins")
    return found if isinstance(found, PlugIns) else PlugIns()


async def _set_up(name: str, settings: Settings, engines: Engines) -> EngineError | None:
    """What can be told of it without asking it: whether it is known, its library is there and a key is set."""
    try:
        await WarmUp({"model": partial(engines.load, name, settings.engine)}).result("model")
    except EngineError as error:
        return error
    finally:
        await engines.aclose()
    return None
