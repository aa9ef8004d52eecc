"""Both event loops in a nightly job, as for use cases (`application/conftest.py`) at all times; else the product's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.nightly import NIGHTLY

LOOPS = ("asyncio", "trio") if NIGHTLY else ("asyncio",)


@pytest.fixture(scope="module", params=[pytest.param((name, {}), id=name) for name in LOOPS])
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    """Asyncio, and trio where there is time."""
    return request.param
