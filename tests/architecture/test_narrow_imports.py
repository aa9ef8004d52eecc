"""What the import linter is too coarse for: parts of a library, asynchrony in the domain, imports by name."""

from __future__ import annotations

import ast

import pytest

from tests.architecture.source_tree import Import, calls_of, imports_of, inside, room, source_files, tree_of

PURE_PATHS = {"PurePath", "PurePosixPath", "PureWindowsPath"}

# Lazy imports by name slip through the linter; only the composition root may make them (entry points, engine modules).
LOADS_BY_NAME = {
    "importlib.import_module",
    "import_module",
    "__import__",
    "importlib.metadata.entry_points",
    "entry_points",
}


def is_narrow(found: Import) -> bool:
    """True unless the import takes more of pathlib, urllib or anyio than the inner rooms may have."""
    head = found.module.split(".")[0]
    if head == "pathlib":
        return found.name in PURE_PATHS
    if head == "urllib":
        return found.module == "urllib.parse" or (found.module, found.name) == ("urllib", "parse")
    if head == "anyio":
        return found.module == "anyio.abc" or (found.module, found.name) == ("anyio", "abc")
    return True


def too_wide(source: str) -> list[str]:
    return [str(found) for found in imports_of(ast.parse(source)) if not is_narrow(found)]


def test_domain_and_ports_take_only_the_pure_parts_of_pathlib_urllib_and_anyio() -> None:
    wide = {
        inside(path): faults
        for path in source_files()
        if room(path) in {"domain", "ports"} and (faults := too_wide(path.read_text(encoding="utf-8")))
    }
    assert wide == {}


@pytest.mark.parametrize(
    "line",
    [
        "import pathlib",
        "from pathlib import Path",
        "import urllib.request",
        "from urllib import request",
        "import anyio",
        "from anyio import create_task_group",
        "import anyio.to_thread",
    ],
)
def test_an_import_that_takes_too_much_is_seen(line: str) -> None:
    assert too_wide(line)
    assert too_wide(f"def late():\n    {line}")


@pytest.mark.parametrize(
    "line",
    [
        "from pathlib import PurePosixPath",
        "from urllib.parse import urlsplit",
        "from anyio.abc import Event",
        "import anyio.abc",
    ],
)
def test_an_import_of_the_pure_part_passes(line: str) -> None:
    assert not too_wide(line)


@pytest.mark.requirement("DC-02")
def test_the_domain_awaits_nothing() -> None:
    asynchronous = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    awaiting = {
        inside(path)
        for path in source_files()
        if room(path) == "domain" and any(isinstance(node, asynchronous) for node in ast.walk(tree_of(path)))
    }
    assert awaiting == set()


def test_ports_promise_no_async_generators() -> None:
    """A `yield` inside a cancel scope is a bug waiting (DESIGN.md, section 4)."""
    yielding = {
        inside(path)
        for path in source_files()
        if room(path) == "ports"
        and any(isinstance(node, ast.Yield | ast.YieldFrom) for node in ast.walk(tree_of(path)))
    }
    assert yielding == set()


def test_only_the_composition_root_loads_modules_by_name() -> None:
    loading = {
        inside(path)
        for path in source_files()
        if room(path) != "bootstrap" and any(name in LOADS_BY_NAME for name, _ in calls_of(tree_of(path)))
    }
    # What `punie.api` loads is imported there for type checkers too: the import graph has it, and test_api.py compares.
    assert loading == {"api.py"}
