"""What every test stands on: a home of its own and the event loops of its folder.

Marks:

- `anyio`: an async test. Under tests/unit and tests/contract it runs on asyncio and on trio, elsewhere on asyncio.
- `requirement("S0-19", ...)`: the ids of tests/requirements.toml that the test shows to hold.

`PUNIE_TEST_PROFILE` picks the hypothesis profile: `ci` (the default where CI is set), `dev` (fewer examples), or
`nightly` (many more; `PUNIE_TEST_PROFILE=nightly make test ARGS=tests/unit`). All are deterministic: the same tree
gives the same examples.
"""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import coverage
import hypothesis
import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parent.parent

for _name, _examples in {"nightly": 800, "ci": 75, "dev": 50}.items():
    hypothesis.settings.register_profile(_name, derandomize=True, deadline=None, database=None, max_examples=_examples)
hypothesis.settings.load_profile(os.environ.get("PUNIE_TEST_PROFILE") or ("ci" if os.environ.get("CI") else "dev"))

# Variables that would let the developer's own set-up leak into a test: settings, keys, addresses of models and proxies.
_LEAKS = ("PUNIE_", "OPENAI_", "ANTHROPIC_", "GOOGLE_", "GEMINI_", "OLLAMA_", "OPENROUTER_", "OTEL_")
_KEPT = "PUNIE_TEST_"
_MEASURED = 5
_PROXIES = ("http_proxy", "https_proxy", "all_proxy")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Under `make check` the processes of one test in `_MEASURED` count too, the same ones in every run.

    A process that is measured takes twice as much of the processor, and most run the same lines. Which tests count
    follows from their names, so a figure that falls is a test or a line that went, and no accident.
    """
    if coverage.Coverage.current() is None:
        return
    if zlib.crc32(item.nodeid.encode()) % _MEASURED == 0:
        os.environ["COVERAGE_PROCESS_START"] = str(ROOT / "pyproject.toml")
    else:
        os.environ.pop("COVERAGE_PROCESS_START", None)


@pytest.fixture(scope="session", autouse=True)
def punie_home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """An empty PUNIE_HOME for the whole run and none of the developer's keys or settings; subprocesses inherit both."""
    home = tmp_path_factory.mktemp("punie-home")
    with pytest.MonkeyPatch.context() as patch:
        for name in list(os.environ):
            leaks = name.startswith(_LEAKS) and not name.startswith(_KEPT)
            if leaks or name.lower() in _PROXIES:
                patch.delenv(name)
        if coverage.Coverage.current() is not None:
            patch.setenv("COVERAGE_FILE", str(ROOT / ".coverage"))
        patch.setenv("PUNIE_HOME", str(home))
        patch.setenv("NO_COLOR", "1")
        yield home


@pytest.fixture(scope="module", params=[pytest.param(("asyncio", {}), id="asyncio")])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Asyncio alone: the loop that the process runs on. tests/unit and tests/contract add trio."""
    return request.param
