"""How many sessions a server holds: memory is bounded, and nobody who is there loses one (docs/serve.md)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path

import anyio
import pytest

from tests.e2e import scripts
from tests.e2e.conftest import project  # noqa: F401 - a fixture
from tests.e2e.raw_client import RpcError
from tests.e2e.remote_client import RemoteClient, Server, served
from tests.e2e.scripts import call, text
from tests.integration.test_serve import left_with_a_question, params, words

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("M-14")]

Serve = Callable[[], AbstractAsyncContextManager[Server]]
SCRIPT = [text("one "), call("write_file", path="a.txt", content="A"), text("two")]


@pytest.fixture
def serve(tmp_path: Path, project: Path) -> Serve:  # noqa: F811 - a fixture
    """A server in which three sessions may be open."""

    @asynccontextmanager
    async def start() -> AsyncIterator[Server]:
        model = scripts.write(tmp_path / "script.json", SCRIPT)
        async with served(tmp_path / "home", project, None, model=model, sessions=3) as server:
            yield server

    return start


async def left(server: Server) -> str:
    """A session that does nothing and waits for its client."""
    async with server.client() as client:
        await client.initialize()
        session = await client.new_session(server.project)
        client.cut()
    return session


async def full(client: RemoteClient, server: Server, method: str, session: str | None = None) -> None:
    """That is refused, and says what to do."""
    asked = {"cwd": str(server.project), "mcpServers": []}
    with pytest.raises(RpcError) as refused:
        await client.request(method, asked if session is None else params(session, server))
    assert (refused.value.code, refused.value.data) == (-32600, {"code": "too_many_sessions"})
    assert "session/close" in refused.value.message


def open_now(server: Server) -> set[str]:
    assert server.clients is not None
    return set(server.clients.reception._rooms)


async def test_sessions_that_are_in_use_stay_and_one_more_is_refused(serve: Serve) -> None:
    async with serve() as server, server.client() as client, server.client() as other:
        await client.initialize()
        await other.initialize()
        sessions = [await client.new_session(server.project) for _ in range(3)]
        await full(client, server, "session/new")
        await full(other, server, "session/new")
        await full(client, server, "session/fork", sessions[0])
        await client.request("session/resume", params(sessions[0], server))
        await client.request("session/close", {"sessionId": sessions[1]})
        assert await other.new_session(server.project)
        await full(client, server, "session/load", sessions[1])
        assert len(open_now(server)) == 3


async def test_the_one_that_waits_the_longest_makes_room_and_can_be_loaded_again(serve: Serve) -> None:
    async with serve() as server:
        lost = [await left(server) for _ in range(3)]
        async with server.client() as client:
            await client.initialize()
            new = await client.new_session(server.project)
            assert open_now(server) == {*lost[1:], new}
            await client.request("session/load", params(lost[0], server))
            assert open_now(server) == {lost[2], lost[0], new}
            await client.request("session/load", params(lost[2], server))
            await full(client, server, "session/new")


async def test_a_session_that_works_is_not_closed_for_another(serve: Serve) -> None:
    async with serve() as server:
        working = [await left_with_a_question(server) for _ in range(3)]
        async with server.client(joined=True) as client:
            client.person.will("allow_once")
            await client.initialize()
            await full(client, server, "session/new")
            await client.request("session/resume", params(working[0], server))
            await client.until(lambda: "two" in words(client, working[0]), "the rest of the turn")
            await full(client, server, "session/new")


async def test_many_that_ask_at_once_get_no_more_than_there_are_places(serve: Serve) -> None:
    async with serve() as server:
        for _ in range(2):
            await left(server)
        async with server.client() as client, server.client() as other:
            await client.initialize()
            await other.initialize()
            asked = {"cwd": str(server.project), "mcpServers": []}
            pending = [await one.start("session/new", asked) for one in (client, other) for _ in range(4)]
            with anyio.fail_after(5):
                answers = [(await one.frame()).message for one in pending]
            assert ["result" in answer for answer in answers].count(True) == 3
            assert len(open_now(server)) == 3


async def test_a_session_that_could_not_be_opened_takes_no_place(serve: Serve) -> None:
    async with serve() as server, server.client() as client:
        await client.initialize()
        for _ in range(5):
            with pytest.raises(RpcError):
                await client.request("session/load", params("none", server))
        for _ in range(3):
            await client.new_session(server.project)
        await full(client, server, "session/new")
