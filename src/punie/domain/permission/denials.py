"""The words of a denial beside its reason: the part of the line, whether the rest would run, and a nearer way."""

from __future__ import annotations

from collections.abc import Callable

from punie.domain.permission.decisions import Decision, PartDecision
from punie.domain.permission.rules import Verdict
from punie.domain.values.display import one_line
from shellsight.report import CommandPart

PART_CHARS = 60
PARTS_TOLD = 3

_EDITING = ("mode:accept-edits", "mode:auto")
_WAYS = (
    (("mode:read-only",), "switch_mode", "asks for more than looking", {"": ""}),
    (_EDITING, "restore_file", "undoes a file", {"git": "checkout restore reset revert clean"}),
    (_EDITING, "edit_file", "changes a file", {"sed": "", "perl": "", "ed": "", "ex": "", "patch": "", "tee": ""}),
)
"""The rules that deny, tools, what they do, and the programs (with their verbs, where only some count) they replace."""


def denial(denied: str, decision: Decision, parts: tuple[CommandPart, ...], offers: Callable[[str], bool]) -> str:
    """The reason `denied` for the model, without a full stop, and the nearest way that is allowed as a sentence.

    A reason of a person, or one that is not about a command, is left as it is. `offers` says whether a tool is offered.
    """
    blamed = [one for one in decision.parts if one.verdict is not Verdict.ALLOW]
    first = next((one for one in blamed if (one.rule, one.reason) == (decision.rule, decision.reason)), None)
    if first is None or decision.reason not in denied:
        return f"{denied}. Nothing was done."
    said = denied
    if len(decision.parts) > 1:
        said = said.replace(decision.reason, f"{_shown(first)}: {decision.reason}", 1)
        more = [f"also {_shown(one)}: {one.reason}" for one in blamed if one is not first]
        said += "".join(f"; {words}" for words in dict.fromkeys(more[:PARTS_TOLD]))
        free = dict.fromkeys(_shown(one) for one in decision.parts if one.verdict is Verdict.ALLOW)
        if free:
            said += f"; {', '.join([*free][:PARTS_TOLD])} would run by {'itself' if len(free) == 1 else 'themselves'}"
    way = _way(first, next((part for part in parts if part.argv == first.argv), None), offers)
    return f"{said}. Nothing was done.{way}"


def _shown(part: PartDecision) -> str:
    return f"`{one_line(' '.join(part.argv), PART_CHARS)}`"


def _way(blamed: PartDecision, part: CommandPart | None, offers: Callable[[str], bool]) -> str:
    """The nearest way that is allowed; empty where none is known."""
    if blamed.rule.startswith("rule:"):
        return ""  # the same rule may be about other ways too
    program, verb = (*blamed.argv, "", "")[:2]
    for rules, tool, does, programs in _WAYS:
        verbs = programs.get(program.rpartition("/")[2], programs.get(""))
        if blamed.rule in rules and verbs is not None and (not verbs or verb in verbs.split()) and offers(tool):
            return f" {tool} {does}."
    if part is not None and not part.literal:
        return " Find out first what its words become, and write them out."
    return ""
