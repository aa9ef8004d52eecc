"""The answer of a hook: what its exit code and its output say."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from attrs import evolve, frozen

from punie.application.hooks.hook import HookEvent
from punie.domain.values.display import display_output, one_line
from punie.domain.values.json_value import JsonObject, NotJsonError, freeze_object, json_text, object_in
from punie.domain.values.terminal import LineEnd

TEXT_CHARS = 10_000
BLOCKS = 2
"""The exit code of a hook that refuses."""

_BLOCKABLE = frozenset({
    HookEvent.PRE_TOOL_USE, HookEvent.POST_TOOL_USE, HookEvent.USER_PROMPT_SUBMIT, HookEvent.STOP,
    HookEvent.SUBAGENT_STOP,
})  # fmt: skip
_TELLING = frozenset({HookEvent.SESSION_START, HookEvent.USER_PROMPT_SUBMIT})
"""Events of which plain output is a text for the model."""


@frozen
class HookAnswer:
    """The answer of one hook, or of several; every text is empty where nothing was said.

    `blocked` is why the call, the prompt or the end of the turn is refused, `asks` why a person is to be asked, `halts`
    why the turn is to end. `context` is for the model, `message` for the person, `trouble` says why the hook failed.
    """

    blocked: str = ""
    asks: str = ""
    halts: str = ""
    context: str = ""
    message: str = ""
    trouble: str = ""

    @property
    def for_model(self) -> str:
        """The text for the model behind the result of a call."""
        return "\n".join(text for text in (self.blocked, self.context) if text)


def joined(answers: Iterable[HookAnswer]) -> HookAnswer:
    """All answers as one."""
    told = list(answers)

    def lines(name: str) -> str:
        return "\n".join(dict.fromkeys(text for one in told if (text := getattr(one, name))))

    return HookAnswer(lines("blocked"), lines("asks"), lines("halts"), lines("context"))


def answer_of(event: HookEvent, end: LineEnd, tool_input: Mapping[str, object]) -> HookAnswer:
    """The meaning of the end of a hook. `tool_input` is what the hook was told of a call's arguments."""
    if end.exit_code == BLOCKS:
        why = _text(end.errors.strip()) or "a hook refused it and gave no reason"
        return HookAnswer(blocked=why) if event in _BLOCKABLE else HookAnswer(trouble=why)
    if end.exit_code != 0:
        said = one_line(end.errors.strip(), 300)
        return HookAnswer(trouble=f"it ended with exit code {end.exit_code}" + (f": {said}" if said else ""))
    out = end.out.strip()
    if not out.startswith("{"):
        return HookAnswer(context=_text(out)) if event in _TELLING else HookAnswer()
    try:
        return _of_json(event, freeze_object(json.loads(out)), tool_input)
    except (ValueError, RecursionError, NotJsonError):
        plain = HookAnswer(context=_text(out)) if event in _TELLING else HookAnswer()
        return evolve(plain, trouble="its output begins like a JSON object and is none")


def _of_json(event: HookEvent, said: JsonObject, tool_input: Mapping[str, object]) -> HookAnswer:
    own = object_in(said.get("hookSpecificOutput"))
    reason, blocked, asks, trouble = _text(said.get("reason")), "", "", ""
    if said.get("decision") == "block" and event in _BLOCKABLE:
        blocked = reason or "a hook refused it and gave no reason"
    decision = own.get("permissionDecision") if event is HookEvent.PRE_TOOL_USE else None
    why = _text(own.get("permissionDecisionReason")) or "a hook says so and gave no reason"
    if decision == "deny":
        blocked = why
    elif decision in {"ask", "defer"}:
        asks = why
    elif decision not in {None, "allow"}:
        asks, trouble = why, f"its decision {one_line(str(decision), 40)} is not known, so a person is asked"
    other = _other(object_in(own.get("updatedInput")), tool_input) if event is HookEvent.PRE_TOOL_USE else ""
    if other and not blocked:
        blocked = f"a hook wants other arguments. Call again with {other}, if that serves the task"
    halts = _text(said.get("stopReason")) or "it gave no reason" if said.get("continue") is False else ""
    context = _text(own.get("additionalContext") or said.get("additionalContext"))
    return HookAnswer(blocked, asks, halts, context, _text(said.get("systemMessage")), trouble)


def _other(updated: Mapping[str, object], tool_input: Mapping[str, object]) -> str:
    """The arguments that a hook would change, as JSON; empty where they are as they were."""
    frozen_input = freeze_object(tool_input)
    changed = {name: value for name, value in freeze_object(updated).items() if frozen_input.get(name) != value}
    return _text(json_text(changed)) if changed else ""


def _text(value: object) -> str:
    return display_output(value)[:TEXT_CHARS] if isinstance(value, str) else ""
