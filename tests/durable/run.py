"""Two servers on one database, many sessions with a scripted model, and kill -9 at random moments.

Each session's turn makes calls that append a line to a file of its own, and asks before each. A client that loses its
server goes to whichever is there, loads its session, and answers the questions that are open.
"""

from __future__ import annotations

import contextlib
import json
import random
import subprocess
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from attrs import define, field
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidHandshake, WebSocketException

from tests.e2e import scripts
from tests.e2e.raw_client import agent_command, clean_environment

TOKEN = "a-token-of-the-load-test-0123456789abcdef"
DONE = "All of it is done."
NAP_S = 0.2


@define
class Server:
    """One of the servers, at a port that it keeps; started again after each kill."""

    folder: Path
    url: str
    model: str
    port: int = 0
    process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it, and wait until it lets clients in."""
        home = self.folder / "home"
        home.mkdir(parents=True, exist_ok=True)
        (self.folder / "token").write_text(TOKEN, "ascii")
        (self.folder / "token").chmod(0o600)
        more = {"PUNIE_TURNS_DURABLE": "true", "PUNIE_SESSIONS_STORE": self.url}
        command = agent_command(
            "serve", "--json", "--port", str(self.port), "--token-file", str(self.folder / "token"),
            "--model", self.model, "--max-sessions", "1000", "--log-file", str(self.folder / "log"),
        )  # fmt: skip
        self.process = subprocess.Popen(command, env=clean_environment(home, **more), stdout=subprocess.PIPE)
        assert self.process.stdout is not None
        ready = json.loads(self.process.stdout.readline())
        self.port = int(ready["url"].rpartition(":")[2].partition("/")[0])

    def kill(self) -> None:
        """Kill -9."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            assert self.process.stdout is not None
            self.process.stdout.close()
            self.process = None

    @property
    def address(self) -> str:
        """The address for clients."""
        return f"ws://127.0.0.1:{self.port}/acp"


@define
class Wire:
    """One connection of a client, with as much of ACP as a turn needs."""

    socket: Any
    said: str = ""
    prompted: bool = False
    asked: int = 0
    _next: int = 0

    async def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The answer to a request; what comes before it is taken in."""
        number = await self.send(method, params)
        while True:
            message = await self.take()
            if message.get("id") == number and "method" not in message:
                return message

    async def send(self, method: str, params: dict[str, Any]) -> int:
        """Send a request; returns its id."""
        self._next += 1
        await self.socket.send(json.dumps({"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}))
        return self._next

    async def take(self) -> dict[str, Any]:
        """The next message. A question is answered with yes."""
        message: dict[str, Any] = json.loads(await self.socket.recv())
        params: Any = message.get("params") or {}
        update = params.get("update", {})
        kind = update.get("sessionUpdate")
        if kind == "agent_message_chunk":
            self.said += update["content"].get("text", "")
        self.prompted = self.prompted or kind == "user_message_chunk"
        if message.get("method") == "session/request_permission":
            self.asked += 1
            (chosen, *_) = [each["optionId"] for each in params["options"] if each["kind"] == "allow_once"]
            outcome = {"outcome": {"outcome": "selected", "optionId": chosen}}
            await self.socket.send(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": outcome}))
        return message


@define
class Client:
    """A person with one session and one prompt, who comes back until the turn is done."""

    project: Path
    servers: list[Server]
    chance: random.Random
    session: str | None = None
    connections: int = 0
    done: bool = False

    async def work(self) -> None:
        """Come back until the turn is done."""
        while not self.done:
            server = self.chance.choice(self.servers)
            with contextlib.suppress(OSError, WebSocketException, InvalidHandshake, TimeoutError):
                async with connect(
                    server.address, additional_headers={"Authorization": f"Bearer {TOKEN}"}, proxy=None, open_timeout=10
                ) as socket:
                    self.connections += 1
                    await self._one_connection(Wire(socket))
            await anyio.sleep(NAP_S)

    async def _one_connection(self, wire: Wire) -> None:
        await wire.request("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        spec = {"cwd": str(self.project), "mcpServers": []}
        if self.session is None:
            opened = await wire.request("session/new", spec)
            self.session = opened["result"]["sessionId"]
        else:
            loaded = await wire.request("session/load", {"sessionId": self.session, **spec})
            if "error" in loaded:  # another server has it for now, or it was never written
                if loaded["error"].get("data", {}).get("code") == "unknown_session" or "unknown" in str(loaded):
                    self.session = None
                return
        if not wire.prompted:
            blocks = [{"type": "text", "text": "go"}]
            await wire.send("session/prompt", {"sessionId": self.session, "prompt": blocks})
        while DONE not in wire.said:
            await wire.take()
        self.done = True


@define
class Outcome:
    """The figures of a run, and what was wrong."""

    kills: int = 0
    seconds: float = 0.0
    connections: int = 0
    effects: int = 0
    problems: list[str] = field(factory=list[str])


@asynccontextmanager
async def _killer(servers: list[Server], kills: int, chance: random.Random, every_s: float) -> AsyncIterator[None]:
    """Kill a server and start it again, so many times, beside the block."""

    async def kill() -> None:
        for _ in range(kills):
            await anyio.sleep(chance.uniform(0.3, 2 * every_s))
            server = chance.choice(servers)
            server.kill()
            await anyio.to_thread.run_sync(server.start)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(kill)
        yield


async def load(
    folder: Path, url: str, *, sessions: int, kills: int, calls: int = 5, seed: int = 0, every_s: float = 3.0
) -> Outcome:
    """One run: the servers, the clients, the kills, and the look at what is there afterwards."""
    chance, outcome, began_s = random.Random(seed), Outcome(kills), time.monotonic()  # noqa: S311 - no secret
    turn: list[scripts.Item] = [scripts.text("I begin. ")]
    for number in range(calls):
        turn += [scripts.call("run_command", command=f"echo {number} >> effects.txt"), scripts.sleep(0.2)]
    model = scripts.write(folder / "script.json", [*turn, scripts.text(DONE)])
    servers = [Server(folder / f"server-{number}", url, model) for number in (1, 2)]
    projects = [folder / f"project-{number}" for number in range(sessions)]
    for project in projects:
        project.mkdir()
    clients = [Client(project, servers, chance) for project in projects]
    try:
        for server in servers:
            await anyio.to_thread.run_sync(server.start)
        async with _killer(servers, kills, chance, every_s), anyio.create_task_group() as people:
            for client in clients:
                people.start_soon(client.work)
    finally:
        for server in servers:
            server.kill()
    outcome.seconds = time.monotonic() - began_s
    for client in clients:
        outcome.connections += client.connections
        lines = _effects(client.project)
        outcome.effects += len(lines)
        if len(set(lines)) != len(lines) or lines != sorted(lines):
            outcome.problems.append(f"{client.project.name}: effects {lines}")
    return outcome


def _effects(project: Path) -> list[str]:
    there = project / "effects.txt"
    return there.read_text("utf-8").split() if there.exists() else []
