"""The tool `ask_user`: a question of the agent to the person, where the client can show one."""

from __future__ import annotations

from attrs import frozen

from punie.application.tools.built_in import STRING, BuiltInTool, optional, schema
from punie.application.tools.session_tool import CallContext, PreparedCall
from punie.domain.errors import ToolFailedError
from punie.domain.session.elicitation import (
    ASK_USER,
    Elicitation,
    ElicitationAction,
    ElicitationAnswer,
    UnusableFormError,
    form_of,
    shown_text,
)
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.schema import text_argument, words_argument
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.display import one_line
from punie.domain.values.json_value import JsonObject
from punie.ports.people import Elicitor
from punie.ports.tools import CallProgress

CHOICES_LIMIT = 20
ASKER = "The agent"

_NO_ANSWER = {
    ElicitationAction.DECLINE: "The user does not want to answer. Go on without it, and say what you took for granted.",
    ElicitationAction.CANCEL: "The user gave no answer. Go on without it, and say what you took for granted.",
}


@frozen
class AskUser(BuiltInTool):
    """Asks one question and waits as long as the person thinks; a question has no effect and needs no permission."""

    elicitor: Elicitor
    TALKS = True
    DESCRIPTOR = ToolDescriptor(
        ASK_USER,
        ToolKind.OTHER,
        "Ask the user one thing that you cannot find out yourself; never for a secret.",
        schema({"question": STRING}, {"choices": optional("array", items=STRING, maxItems=CHOICES_LIMIT)}),
        categories=("session",),
        roles={"question": Role.PLAIN, "choices": Role.PLAIN},
        column=Column.READ,
    )

    def title(self, arguments: JsonObject) -> str:
        return one_line(f"Asking: {text_argument(arguments, 'question')}")

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        question = shown_text(text_argument(arguments, "question"))
        if not question:
            raise ToolFailedError("The question is empty.")
        choices = tuple(dict.fromkeys(words_argument(arguments, "choices") or ()))
        elicitation = Elicitation(question, _form(choices), ASKER, context.call_id)

        async def effect(_progress: CallProgress) -> ToolResult:
            return _told(await self.elicitor.ask(elicitation), choices)

        return PreparedCall(effect, waits_for_person=True)


def _form(choices: tuple[str, ...]) -> JsonObject:
    """The form: one field for the answer, and one for a remark where there are choices, in case that none fits."""
    answer: dict[str, object] = {"type": "string", "title": "Answer"}
    fields: dict[str, object] = {"answer": answer}
    if choices:
        answer["enum"] = list(choices)
        fields["remark"] = {"type": "string", "title": "Remark"}
    try:
        return form_of({"type": "object", "properties": fields, "required": ["answer"]})
    except UnusableFormError as error:
        raise ToolFailedError(f"The question cannot be shown: {error}.") from error


def _told(answer: ElicitationAnswer, choices: tuple[str, ...]) -> ToolResult:
    said = text_argument(answer.content, "answer").strip()
    if answer.action is ElicitationAction.ACCEPT and (said in choices if choices else said):
        remark = text_argument(answer.content, "remark").strip()
        text = f"The user answers: {said}" + (f"\nand remarks: {remark}" if remark else "")
        return ToolResult.success(text, structured={"answer": said, **({"remark": remark} if remark else {})})
    action = ElicitationAction.CANCEL if answer.action is ElicitationAction.ACCEPT else answer.action
    return ToolResult.success(_NO_ANSWER[action], structured={"answer": None})
