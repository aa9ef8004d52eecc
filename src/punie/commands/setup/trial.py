"""One small request to a model, to find out whether the model can be used."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import TypeVar

import anyio
import anyio.to_thread
from attrs import frozen

from punie.bootstrap.engines import HOW_TO_CHOOSE, make_engine
from punie.bootstrap.plugins import PlugIns, scan
from punie.bootstrap.settings.values import PYDANTIC_AI
from punie.commands.running import unless_interrupted
from punie.domain.errors import EngineError, EngineErrorKind
from punie.domain.model.choice import DIRECT
from punie.domain.model.provider import ModelSettings
from punie.ports.engine import ModelEngine

LIMIT_S = 30.0

MODEL_FAILED = (
    EngineErrorKind.AUTH,
    EngineErrorKind.RATE_LIMIT,
    EngineErrorKind.OVERLOADED,
    EngineErrorKind.CONNECTION,
    EngineErrorKind.TIMEOUT,
)
"""The kinds of errors that a model's provider is the cause of."""


@frozen
class Trial:
    """The result of trying a model.

    `kind` is a value of `EngineErrorKind`, None where the model can be used. `asked` is False for a model that is
    loaded from this machine at the first prompt.
    """

    ok: bool
    detail: str
    next_step: str = ""
    kind: str | None = None
    asked: bool = True


async def try_model(
    model: str | None,
    reach: Callable[[str], ModelSettings],
    plug_ins: PlugIns | None = None,
    limit_s: float = LIMIT_S,
    choice: str = PYDANTIC_AI,
    *,
    ask: bool = True,
) -> Trial:
    """Try the model of that name, for `limit_s` at most; nothing is raised.

    `reach` returns the stored key and address, and may block. No request is made without a model, for an engine that is
    not a `ModelEngine` (a session is opened and closed), and where `ask` is False: the trial then finds out whether the
    model is known, its library is installed and a key is set.
    """
    if model is None or model == DIRECT:
        return Trial(True, "no model is in use: prompts are commands", HOW_TO_CHOOSE)
    try:
        engine = make_engine(model, plug_ins, reach, choice)
        if not isinstance(engine, ModelEngine):
            session = await anyio.to_thread.run_sync(engine.open, "trial")
            await session.aclose()
            return Trial(True, f"{model} can be opened; nothing was asked")
    except EngineError as error:
        return _failed(error)
    try:
        if not ask:
            await anyio.to_thread.run_sync(engine.load, abandon_on_cancel=True)
            return Trial(True, f"{model} is set up", asked=False)
        with anyio.fail_after(limit_s):
            answer = await engine.ask_once()
    except EngineError as error:
        return _failed(error)
    except TimeoutError:
        cause = f"{model} did not answer within {limit_s:g} seconds."
        return Trial(False, cause, "Check the network; a local server may still be loading it.", _TIMEOUT)
    finally:
        with anyio.move_on_after(1, shield=True):
            await engine.aclose()
    if answer is None:
        return Trial(True, f"{model} can be used; it is loaded at the first prompt", asked=False)
    return Trial(True, f"{model} answers")


_TIMEOUT = EngineErrorKind.TIMEOUT.value


def _failed(error: EngineError) -> Trial:
    return Trial(False, error.cause, error.next_step, error.kind)


LISTING_LIMIT_S = 10.0
MOST_LISTED = 40
_log = logging.getLogger("punie")

T = TypeVar("T")


class Interrupted(Exception):  # noqa: N818 - a signal is no error
    """A signal came; `code` is its exit code."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def tried_now(model: str, settings: ModelSettings) -> Trial:
    """Try the model with that key and address. Raises `Interrupted`."""
    sys.stderr.write(f"Trying {model} ...\n")
    return _finished(lambda: try_model(model, lambda _: settings, scan(_log)))


def listed_now(model: str, settings: ModelSettings) -> Sequence[str]:
    """At most 40 models of the provider's list; none where the provider cannot be asked. Raises `Interrupted`."""

    async def ask() -> Sequence[str]:
        with suppress(EngineError):
            engine = make_engine(model, scan(_log), lambda _: settings)
            if isinstance(engine, ModelEngine):
                async with aclosing(engine):
                    with anyio.move_on_after(LISTING_LIMIT_S):
                        return (await engine.siblings())[:MOST_LISTED]
        return ()

    return _finished(ask)


def _finished(work: Callable[[], Awaitable[T]]) -> T:
    done: list[T] = []

    async def run() -> int:
        done.append(await work())
        return 0

    code = anyio.run(unless_interrupted, run)
    if not done:
        raise Interrupted(code)
    return done[0]
