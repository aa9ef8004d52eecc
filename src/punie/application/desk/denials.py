"""The words of a denial beside its reason: the part of the line, whether the rest would run, and a nearer way."""

from __future__ import annotations

import re
from collections.abc import Callable

from punie.domain.permission.decisions import Decision, PartDecision
from punie.domain.permission.rules import Verdict
from punie.domain.values.display import one_line
from shellsight.report import CommandPart

PART_CHARS = 60
PARTS_TOLD = 3

_EDITING = ("mode:accept-edits", "mode:auto")
_WAYS = (
    (("mode:read-only",), "switch_mode asks for more than looking.", ""),
    (_EDITING, "restore_file undoes a file.", r"(?:\S*/)?git (?:checkout|restore|reset|revert|clean)(?!\S)"),
    (_EDITING, "edit_file changes a file.", r"(?:\S*/)?(?:sed|perl|ed|ex|patch|tee)(?!\S)"),
)
"""The rules that deny, a tool with what it does, and the commands that it replaces."""


def denial(denied: str, decision: Decision, parts: tuple[CommandPart, ...], offers: Callable[[str], bool]) -> str:
    """The reason `denied` for the model, without a full stop, and the nearest way that is allowed as a sentence.

    A reason of a person, or one that is not about a command, is left as it is. `offers` says whether a tool is offered.
    """
    blamed = [one for one in decision.parts if one.verdict is not Verdict.ALLOW]
    first = next((one for one in blamed if (one.rule, one.reason) == (decision.rule, decision.reason)), None)
    if first is None or decision.reason not in denied:
        return f"{denied}. Nothing was done."
    if len(decision.parts) > 1:
        denied = denied.replace(decision.reason, f"{_shown(first)}: {decision.reason}", 1)
        more = dict.fromkeys(f"; also {_shown(one)}: {one.reason}" for one in blamed if one is not first)
        free = dict.fromkeys(_shown(one) for one in decision.parts if one not in blamed)
        runs = f"; {', '.join([*free][:PARTS_TOLD])} would run by {'itself' if len(free) == 1 else 'themselves'}"
        denied += "".join([*more][:PARTS_TOLD]) + (runs if free else "")
    in_doubt = any(part.argv == first.argv and not part.literal for part in parts)
    return f"{denied}. Nothing was done.{_way(first, offers, in_doubt=in_doubt)}"


def _shown(part: PartDecision) -> str:
    return f"`{one_line(' '.join(part.argv), PART_CHARS)}`"


def _way(blamed: PartDecision, offers: Callable[[str], bool], *, in_doubt: bool) -> str:
    """The nearest way that is allowed; empty where none is known."""
    for rules, way, replaced in _WAYS:
        if blamed.rule in rules and re.match(replaced, " ".join(blamed.argv)) and offers(way.split()[0]):
            return f" {way}"
    denied_by_rule = blamed.rule.startswith("rule:")  # which may be about other ways too
    return " Find out first what its words become, and write them out." if in_doubt and not denied_by_rule else ""
