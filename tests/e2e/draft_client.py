"""The raw client in ACP v2 (draft): its words for the same things, and the rules of its own."""

from __future__ import annotations

import json
from typing import Any

from attrs import define

from tests.e2e.draft_rules import DRAFT_RULES
from tests.e2e.ide_parts import Json
from tests.e2e.raw_client import Pending, RawClient, RpcError
from tests.e2e.turns import Turn
from tests.e2e.wire_log import decode
from tests.e2e.wire_rules import Conversation, key_of, violations


@define
class DraftClient(RawClient):
    """As `RawClient`; `initialize` asks for version 2, and a turn ends with the session's being idle.

    An array of the agent is in `batches`, and its entries are in the log as if each had come alone.
    """

    async def initialize(self, version: int = 2, **more: Any) -> Json:
        """The handshake with `self.capabilities`."""
        info = {"name": "raw", "version": "1"}
        params = {"protocolVersion": version, "info": info, "capabilities": self.capabilities, **more}
        return await self.request("initialize", params)

    async def start_batch(self, *messages: Any) -> list[Pending]:
        """Send one batch; its requests can be waited for."""
        frames = [self.log.add("client", json.dumps(message).encode()) for message in messages]
        sent = [Pending(self, frame.message["id"], frame) for frame in frames if frame.is_request]
        self._pending |= {key_of(pending.id): pending for pending in sent}
        assert self.process.stdin is not None
        await self.process.stdin.send(json.dumps(messages).encode() + b"\n")
        return sent

    async def _take(self, line: bytes) -> None:
        message = decode(line)
        if not isinstance(message, list) or not message:
            await super()._take(line)
            return
        self.batches.append(message)
        for entry in message:
            await super()._take(json.dumps(entry).encode())

    async def turn_of(self, prompt: Pending, timeout_s: float) -> Turn:
        """The turn of a prompt that was sent: from its message to its end. Raises what it failed of."""
        session, message = prompt.sent.params["sessionId"], (await prompt.result(timeout_s))["messageId"]

        def ended() -> tuple[int, int, Json] | None:
            begun = None
            for frame in self.log.from_agent("session/update", after=prompt.sent.index):
                update = frame.params["update"]
                if frame.params["sessionId"] != session:
                    continue
                if update["sessionUpdate"] == "user_message" and update["messageId"] == message:
                    begun = frame.index
                elif begun is not None and update.get("state") == "idle":
                    return begun, frame.index, update
            return None

        first, last, idle = await self.log.until(ended, f"the end of the turn of {message}", timeout_s)
        if "error" in idle:
            raise RpcError(idle["error"])
        return Turn(idle["stopReason"], self.log.updates(session, after=first, before=last), idle, first, last)

    def violations(self, talk: Conversation) -> list[str]:
        return violations(talk, DRAFT_RULES)
