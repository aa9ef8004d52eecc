"""What coverage looks at under `make check`: the product's modules as they load, and tests that run them in process.

The tracer takes as much of the processor as the tests themselves, so it runs only where it can see a line that no other
test shows it: not while tests are collected, not in a test's second run on trio, not in more than one process while the
modules load, not under tests/e2e, whose lines run in other processes, and not under tests/architecture, which reads the
product and hardly runs it. What it shows is therefore a lower bound.
"""

from __future__ import annotations

import contextlib
import importlib
import pkgutil
from collections.abc import Iterator
from pathlib import Path

import coverage
import pytest

import punie

_TESTS = Path(__file__).resolve().parent
_UNMEASURED = (_TESTS / "architecture", _TESTS / "e2e")


def load_everything() -> None:
    """Load every module, so that its own lines count; one that cannot load here is the business of its tests."""
    for module in pkgutil.walk_packages(punie.__path__, "punie.", onerror=lambda _: None):
        if not module.name.endswith("__main__"):
            with contextlib.suppress(ImportError):
                importlib.import_module(module.name)


def is_measured(item: pytest.Item) -> bool:
    """Whether the tracer runs while this test does."""
    spec = getattr(item, "callspec", None)
    backend = spec.params.get("anyio_backend") if spec else None
    on_trio = isinstance(backend, tuple) and backend[0] == "trio"
    return not on_trio and not any(map(item.path.is_relative_to, _UNMEASURED))


def stop() -> None:
    """Stop every tracer: pytest-cov leaves an older one in each process of pytest-xdist, which would go on."""
    while (running := coverage.Coverage.current()) is not None:
        running.stop()


class Measuring:
    """Runs the tracer of one process for the tests that are measured, and at no other time."""

    def __init__(self, tracer: coverage.Coverage, *, is_first: bool) -> None:
        """Take the running tracer, show it the modules where this is the first process, and stop it."""
        self._tracer = tracer
        if not is_first:
            stop()
        load_everything()
        stop()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if not is_measured(item):
            return (yield)
        self._tracer.start()
        try:
            return (yield)
        finally:
            self._tracer.stop()
