"""A stub endpoint in the place of a model file's own server, and steps as such a server writes them."""

from __future__ import annotations

import json
from collections.abc import Sequence

from punie_gguf.server import ModelServer, Serving, Tell

STUB_MODEL = "gguf:/nowhere/stub.gguf"
CONTEXT_TOKENS = 32_768


class StubLlama(ModelServer):
    """A server that runs already, and goes on when the last session is over."""

    def __init__(self, base_url: str, context_tokens: int = CONTEXT_TOKENS) -> None:
        super().__init__(STUB_MODEL.removeprefix("gguf:"))
        self.serving = self._stub = Serving(base_url, "stub", context_tokens)

    async def ready(self, tell: Tell) -> Serving:
        return self._stub

    async def stop(self) -> None:
        """It is somebody else's."""


def escaped(piece: str) -> str:
    """A piece of text as a piece of a JSON string."""
    return json.dumps(piece)[1:-1]


def answering(pieces: Sequence[str]) -> list[str]:
    """The pieces of a final answer."""
    return ['{"answer":"', *map(escaped, pieces), '"}']
