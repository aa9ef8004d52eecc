"""The bodies of requests to OpenAI's APIs, made in a time that grows little with the conversation.

The client walks every argument of a request along its type before it is encoded: to leave out what was not given, and
to change what its type says is to be changed, which for a conversation is nothing. That walk takes most of the time of
a request in a long session. Fields of `extra_body` are merged into the body after it, in the place of the argument of
that name, so that the same bytes are sent. And the library words each message anew for each request of Chat
Completions; here it does so once.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence
from functools import wraps
from operator import is_
from typing import Any, Generic, TypeVar

from attrs import define
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse
from pydantic_ai.models import Model

from punie.adapters.pydantic_ai.earlier import Memo

V = TypeVar("V")

_LONG = ("messages", "input", "tools")
_REQUEST, _RESPONSE = "_map_user_message", "_map_model_response"
"""The library's hooks for models that word messages in another way."""


def with_whole_bodies(model: Model) -> Model:
    """The same model; where its client is OpenAI's, that looks into no conversation, and no message is worded twice.

    A copy of the client with other options looks into them as before.
    """
    client: Any = None if model.provider is None else model.provider.client
    if any(base.__module__.partition(".")[0] == "openai" for base in type(client).__mro__):
        from pydantic_ai.models.openai import OpenAIChatModel

        # The other of the two is not looked at: that would load its modules, 3 MB.
        requests = client.chat.completions if isinstance(model, OpenAIChatModel) else client.responses
        requests.create = _whole(requests.create)
        return wording_once(model)
    return model


def _whole(create: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The client's method `create` with the long fields among those of `extra_body`."""

    @wraps(create)
    async def created(**given: Any) -> Any:
        long = {name: given[name] for name in _LONG if isinstance(given.get(name), list)}
        try:
            return await create(
                **{**given, **dict.fromkeys(long, ()), "extra_body": {**long, **(given.get("extra_body") or {})}}
            )
        except TypeError:
            # The encoder met a value that only the walk can take; nothing was sent.
            return await create(**given)

    return created


def wording_once(model: Model) -> Model:
    """The same model, which words each message for Chat Completions once, as long as its parts are the same."""
    from pydantic_ai.models.openai import OpenAIChatModel

    if isinstance(model, OpenAIChatModel):
        word_request: Callable[[ModelRequest], AsyncIterator[Any]] = getattr(model, _REQUEST)
        word_response: Callable[[ModelResponse], Any] = getattr(model, _RESPONSE)
        requests, responses = Worded[list[dict[str, Any]]](), Worded[dict[str, Any] | None]()

        async def anew(message: ModelRequest) -> AsyncIterator[dict[str, Any]]:
            for item in requests.keep(message, [item async for item in word_request(message)]):
                yield dict(item)

        def request_worded(message: ModelRequest) -> AsyncIterator[dict[str, Any]]:
            items = requests.of(message)
            return anew(message) if items is None else _Again(items)

        def response_worded(message: ModelResponse) -> dict[str, Any] | None:
            worded = responses.of(message) or responses.keep(message, word_response(message))
            return worded and dict(worded)

        setattr(model, _REQUEST, request_worded)
        setattr(model, _RESPONSE, response_worded)
    return model


class _Again(AsyncIterator[dict[str, Any]]):
    """Copies of items, for the library may still add to one; event loops register a generator, which takes longer."""

    def __init__(self, items: Iterable[dict[str, Any]]) -> None:
        self._items = iter(items)

    async def __anext__(self) -> dict[str, Any]:
        for item in self._items:
            return dict(item)
        raise StopAsyncIteration


@define
class _Wording(Generic[V]):
    """The wording of a message, and the parts that it was made of; lives as long as the message."""

    parts: Sequence[object] = ()
    worded: V | None = None


class Worded(Generic[V]):
    """Wordings by message. One with more than text in it is not kept: pictures would be held twice."""

    def __init__(self) -> None:
        self._known = Memo[_Wording[V]](lambda _: _Wording())

    def of(self, message: ModelMessage) -> V | None:
        """The wording, where it was kept and the message has the same parts."""
        known = self._known.of(message)
        alike = len(known.parts) == len(message.parts) and all(map(is_, known.parts, message.parts))
        return known.worded if alike else None

    def keep(self, message: ModelMessage, worded: V) -> V:
        """Keep a wording, and return it."""
        if all(isinstance(getattr(part, "content", ""), str) for part in message.parts):
            known = self._known.of(message)
            known.parts, known.worded = tuple(message.parts), worded
        return worded
