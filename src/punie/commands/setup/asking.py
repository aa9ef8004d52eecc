"""Asking a model from a command: with a signal that stops it, and for a bounded time."""

from __future__ import annotations

import logging
import sys
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import anyio

from punie.adapters.pydantic_ai.engine import PydanticAiEngine
from punie.bootstrap.model_trial import Trial, try_model
from punie.bootstrap.plugins import scan
from punie.bootstrap.signals import unless_interrupted
from punie.domain.errors import EngineError
from punie.domain.model.place import ModelSettings

LISTING_LIMIT_S = 10.0
MOST_LISTED = 40
_log = logging.getLogger("punie")

T = TypeVar("T")


class Interrupted(Exception):  # noqa: N818 - a signal is no error
    """A signal came; `code` is the exit code that says so."""

    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


def tried_now(model: str, settings: ModelSettings) -> Trial:
    """Whether the model answers, reached so. Raises `Interrupted`."""
    sys.stderr.write(f"Trying {model} ...\n")
    return _finished(lambda: try_model(model, lambda _: settings, scan(_log)))


def listed_now(model: str, settings: ModelSettings) -> Sequence[str]:
    """The models that its provider lists, some forty at most; none where it cannot be asked. Raises `Interrupted`."""

    async def ask() -> Sequence[str]:
        engine = PydanticAiEngine(model, settings)
        try:
            with anyio.move_on_after(LISTING_LIMIT_S):
                return (await engine.siblings())[:MOST_LISTED]
        except EngineError:
            pass
        finally:
            await engine.aclose()
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
