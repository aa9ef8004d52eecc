"""A session without an IDE, for programs of others."""

from __future__ import annotations

import pytest

from punie.bootstrap.session_here import open_session_here

pytestmark = pytest.mark.anyio


async def test_a_relative_directory_is_refused_with_what_to_give_instead():
    with pytest.raises(ValueError, match="resolve"):
        async with open_session_here("."):
            pass
