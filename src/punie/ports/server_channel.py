"""The way to MCP servers that the client itself runs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping
from typing import Protocol, TypeAlias, runtime_checkable

from attrs import define

Params: TypeAlias = Mapping[str, object]
"""Plain JSON values, as they were decoded; nobody changes them."""


Hearing: TypeAlias = Callable[[str, Params], None]
"""Hears one notification of MCP, by its method and parameters; returns at once."""


@runtime_checkable
class ServerChannel(Protocol):
    """Carries requests of MCP to servers of the client, and what comes of them back; lives as long as the client."""

    @abstractmethod
    async def request(self, server_id: str, method: str, params: Params, heard: Hearing) -> object:
        """Ask the server of that id; gives the result that MCP promises for the method, unchecked, or any other JSON.

        `params` are the inner ones, with everything that MCP wants in their `_meta`. `heard` is told what the server
        says of this request while it runs. The deadline is the caller's; cancelled, it takes the request back.

        Raises `ServerAnswerError` where the server answers with an error of MCP, `ChannelError` where it gave no
        answer that can be used.
        """
        ...


@define(eq=False)
class ServerAnswerError(Exception):
    """The server's own error: a code of MCP, and its words."""

    code: int
    message: str

    def __str__(self) -> str:
        return f"{self.message} ({self.code})"


@define(eq=False)
class ChannelError(Exception):
    """The request came to nothing on its way; the words follow "the server ...". `lost`: the client is gone."""

    words: str
    lost: bool = False

    def __str__(self) -> str:
        return self.words
