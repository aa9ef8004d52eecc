"""A form that somebody asks a person to fill in, and what came of it (ACP v1, `elicitation/create`)."""

from __future__ import annotations

from enum import StrEnum

from attrs import frozen

from punie.domain.values.json_value import EMPTY_OBJECT, JsonObject

ASK_USER = "ask_user"
"""The tool that asks for the agent itself: the time of its calls is a person's."""


class ElicitationAction(StrEnum):
    """What the person did: sent the form, said no, or went away without a choice."""

    ACCEPT = "accept"
    DECLINE = "decline"
    CANCEL = "cancel"


@frozen
class Elicitation:
    """A question with fields to fill in.

    `message` is what the person reads, and `asker` who wants to know it ("the MCP server weather"). `schema` is a JSON
    Schema of an object with primitive fields, as `elicitation_form` lets through. `call_id` is the tool call that waits
    for the answer, where exactly one does.
    """

    message: str
    schema: JsonObject
    asker: str
    call_id: str | None = None


@frozen
class ElicitationAnswer:
    """What came of it; `content` has the fields where it was accepted, and is empty else."""

    action: ElicitationAction
    content: JsonObject = EMPTY_OBJECT


DECLINED = ElicitationAnswer(ElicitationAction.DECLINE)
CANCELLED = ElicitationAnswer(ElicitationAction.CANCEL)
