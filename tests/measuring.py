"""What coverage looks at under `make check`: the product's modules as they load, and tests that run them in process.

The tracer takes as much of the processor as the tests themselves, so it runs only where it can see a line that no other
test shows it: not while tests are collected, not in a test's second run on trio, and not under tests/e2e, whose lines
run in other processes. What it shows is therefore a lower bound.
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

_UNMEASURED = Path(__file__).resolve().parent / "e2e"


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
    return not on_trio and not item.path.is_relative_to(_UNMEASURED)


class Measuring:
    """Runs the tracer of one process for the tests that are measured, and at no other time."""

    def __init__(self, tracer: coverage.Coverage) -> None:
        """Take the running tracer, show it the modules, and stop it."""
        self._tracer = tracer
        load_everything()
        # pytest-cov leaves an older one in each process of pytest-xdist, which goes on where this one stops.
        while (running := coverage.Coverage.current()) is not None:
            running.stop()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        if not is_measured(item):
            return (yield)
        self._tracer.start()
        try:
            return (yield)
        finally:
            self._tracer.stop()
