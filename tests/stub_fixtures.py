"""pytest fixtures around the stub model; a conftest imports what it needs from here."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.stub_openai import StubOpenAI


@pytest.fixture
def stub_openai() -> Iterator[StubOpenAI]:
    """A stateless stub server: the prompt's own JSON command says what it answers."""
    with StubOpenAI() as stub:
        yield stub
