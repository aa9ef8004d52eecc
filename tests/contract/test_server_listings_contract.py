"""What every keeper of listings promises, in memory and on the disk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from punie.domain.values.json_value import freeze_object
from punie.ports.servers import ServerListings
from tests.contract.state_tables import SERVER_LISTINGS
from tests.fakes.servers import a_listing, a_tool

pytestmark = pytest.mark.anyio


@pytest.fixture(params=SERVER_LISTINGS.values(), ids=[implementation.__name__ for implementation in SERVER_LISTINGS])
async def listings(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ServerListings]:
    async with request.param(tmp_path) as made:
        yield made


async def test_at_first_there_is_none(listings: ServerListings):
    assert await listings.last("/project") == {}


async def test_the_last_listing_of_each_server_stands_whole(listings: ServerListings):
    rich = a_tool(
        "rich",
        title="Rich",
        description="\ud83d half a pair, \x00 and 漢字",
        input_schema=freeze_object({"type": "object", "z": 1, "a": [1.5, None, True, {"b": []}]}),
        output_schema=freeze_object({"type": "object"}),
        annotations=freeze_object({"readOnlyHint": True}),
    )
    assert await listings.keep(a_listing())
    assert await listings.keep(a_listing(fingerprint="2", listed_at=7.5, tools=(rich, a_tool()), legacy=True))
    assert await listings.keep(a_listing(server="beta", tools=()))
    assert await listings.keep(a_listing(server="gamma", listed_at=0.0, tools=(), failed="it is down"))
    assert await listings.keep(a_listing(server="delta", failed='it is "down"'))
    found = await listings.last("/project")
    assert found == {
        "alpha": a_listing(fingerprint="2", listed_at=7.5, tools=(rich, a_tool()), legacy=True),
        "beta": a_listing(server="beta", tools=()),
        "gamma": a_listing(server="gamma", listed_at=0.0, tools=(), failed="it is down"),
        "delta": a_listing(server="delta", failed='it is "down"'),
    }
    assert list(found["alpha"].tools[0].input_schema) == ["type", "z", "a"], "the order of keys stays"


async def test_directories_do_not_share_listings(listings: ServerListings):
    await listings.keep(a_listing(directory="/elsewhere"))
    assert await listings.last("/project") == {}
