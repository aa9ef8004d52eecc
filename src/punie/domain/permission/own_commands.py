"""Punie's own command line, run by a tool: an agent must not give itself leave."""

from __future__ import annotations

from punie.domain.permission.decisions import Finding
from punie.domain.permission.modes import Verdict
from shellsight.report import FED, CommandPart

OWN_COMMANDS_RULE = "built-in:own-commands"

LOOSENING: tuple[tuple[str, ...], ...] = (
    ("permissions", "trust"),
    ("permissions", "revoke"),
    ("servers", "approve"),
    ("setup",),
    ("sessions", "delete"),
)
"""Subcommands that change Punie's settings or what it remembers; `usage --disable` is told by its option."""

AGENTS = frozenset({"ask", "acp", "demo", "tools", "pipelines"})
"""Subcommands that run an agent, or a tool, under leave that their own flags give."""

_RUNNERS = frozenset({"-m", "run", "exec", "--", "x"})


def own_command_finding(part: CommandPart) -> Finding | None:
    """A denial where the part has Punie change its own settings or state, a question where it starts an agent."""
    forms = (part.argv, *part.forms)
    # Most lines have no such word anywhere: one look at all of them tells.
    if "punie" not in " ".join(map(" ".join, forms)).lower():
        return None
    found: Finding | None = None
    for form in forms:
        for place, word in enumerate(form):
            if _name(word) != "punie":
                continue
            following = form[place + 1 :]
            runs = place == 0 or form[place - 1] in _RUNNERS or _name(form[0]) in {"uvx", "npx", "pipx"}
            if _loosens(following, runs=runs):
                return Finding(Verdict.DENY, OWN_COMMANDS_RULE, "it changes Punie's own settings or what it remembers")
            if runs and (not part.literal or AGENTS.intersection(following[:1])):
                found = Finding(Verdict.ASK, OWN_COMMANDS_RULE, "it starts an agent with leave of its own")
    return found


def _loosens(words: tuple[str, ...], *, runs: bool) -> bool:
    # Two such words tell enough wherever they stand; one may as well be a word that somebody searches for. Options may
    # stand before and between them, with values that look like words.
    plain = tuple(word for word in words if not word.startswith("-"))
    shifts = range(3) if len(plain) < len(words) else range(1)
    for start in LOOSENING:
        if (runs or len(start) > 1) and any(plain[shift : shift + len(start)] == start for shift in shifts):
            return True
    if runs and FED in words:
        return True
    return words[:1] == ("usage",) and any(word.startswith("--disable") for word in words)


def _name(word: str) -> str:
    return word.replace("\\", "/").rpartition("/")[2].lower().removesuffix(".exe")
