"""What every keeper of approved servers promises, in memory and on the disk."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from punie.ports.servers import ServerApprovals
from tests.contract.state_tables import SERVER_APPROVALS
from tests.fakes.servers import an_approval

pytestmark = pytest.mark.anyio


@pytest.fixture(params=SERVER_APPROVALS.values(), ids=[implementation.__name__ for implementation in SERVER_APPROVALS])
async def approvals(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[ServerApprovals]:
    async with request.param(tmp_path) as made:
        yield made


async def test_at_first_no_server_is_approved(approvals: ServerApprovals):
    assert await approvals.approved("/project") == {}


async def test_the_definition_approved_last_stands(approvals: ServerApprovals):
    assert await approvals.approve(an_approval(fingerprint="1"))
    assert await approvals.approve(an_approval(fingerprint="2"))
    assert await approvals.approve(an_approval(name="beta", fingerprint="3"))
    assert await approvals.approved("/project") == {"alpha": "2", "beta": "3"}


async def test_what_was_approved_elsewhere_is_not_approved_here(approvals: ServerApprovals):
    await approvals.approve(an_approval(directory="/elsewhere"))
    await approvals.approve(an_approval(directory="/project/below"))
    await approvals.approve(an_approval(directory="/"))
    assert await approvals.approved("/project") == {}


async def test_an_approval_that_was_taken_back_is_none_and_the_others_stand(approvals: ServerApprovals):
    kept = [an_approval(name="beta"), an_approval(directory="/elsewhere")]
    for approval in (an_approval(), *kept):
        assert await approvals.approve(approval)
    assert await approvals.revoke("/project", "alpha")
    assert await approvals.approved("/project") == {"beta": "f" * 64}
    assert await approvals.approved("/elsewhere") == {"alpha": "f" * 64}
    assert await approvals.revoke("/project", "alpha"), "there is nothing more to take back"
    assert await approvals.approve(an_approval(fingerprint="2"))
    assert (await approvals.approved("/project"))["alpha"] == "2"


@pytest.mark.parametrize("name", ["", "a b", "ünï", "'; DROP TABLE approved_servers; --"])
async def test_any_name_comes_back_as_it_was(approvals: ServerApprovals, name: str):
    assert await approvals.approve(an_approval(name=name))
    assert await approvals.approved("/project") == {name: "f" * 64}
