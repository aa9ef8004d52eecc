"""A form for the person at the client, through `elicitation/create` (ACP v1, form mode)."""

from __future__ import annotations

import msgspec
from attrs import frozen
from msgspec import Raw

from punie.adapters.acp.handshake import Params, decode
from punie.domain.session.elicitation import CANCELLED, DECLINED, Elicitation, ElicitationAction, ElicitationAnswer
from punie.domain.values.json_value import NotJsonError, freeze_object, thaw_object
from punie.mechanics.jsonrpc.connection import Connection, ConnectionClosed, RpcError
from punie.ports.people import Elicitor


class FormAnswer(Params):
    """The answer to `elicitation/create`."""

    action: str
    content: Raw = Raw(b"null")


@frozen
class AcpElicitor(Elicitor):
    """The person at the client, of one session; only for a client that advertised `elicitation.form`."""

    connection: Connection
    session_id: str

    async def ask(self, elicitation: Elicitation) -> ElicitationAnswer:
        try:
            answer = await self.connection.request("elicitation/create", self._params(elicitation))
            return _read(decode(answer, FormAnswer))
        except (RpcError, ConnectionClosed, msgspec.DecodeError, NotJsonError):
            return CANCELLED

    def _params(self, elicitation: Elicitation) -> dict[str, object]:
        call = {} if elicitation.call_id is None else {"toolCallId": elicitation.call_id}
        return {
            "sessionId": self.session_id,
            **call,
            "mode": "form",
            "message": f"{elicitation.asker} asks: {elicitation.message}",
            "requestedSchema": thaw_object(elicitation.schema),
        }


def _read(answer: FormAnswer) -> ElicitationAnswer:
    match answer.action:
        case ElicitationAction.ACCEPT:
            given: object = decode(answer.content, object)
            return ElicitationAnswer(ElicitationAction.ACCEPT, freeze_object({} if given is None else given))
        case ElicitationAction.DECLINE:
            return DECLINED
        case _:
            return CANCELLED
