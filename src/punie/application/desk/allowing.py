"""The rules that would have let a denied call run, for a person who starts the next run with them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from attrs import evolve, frozen

from punie.domain.permission.addresses import places_of
from punie.domain.permission.decisions import Decision, Facts, PermissionRequest, Policy
from punie.domain.permission.policy import decide
from punie.domain.permission.rules import Rule, Verdict, Words, too_wide
from punie.domain.values.display import display_exact
from punie.domain.values.paths import is_inside, shown_path

FETCHES_PAGES = "fetch_page"
"""The tool whose rules may be about hosts, on a command line."""

MOST_RULES = 3
"""No rules are named for a line that needs more than these: a person would not read them."""

WORD_CHARS = 60
PATH_CHARS = 200

_WORD = re.compile(r"[A-Za-z0-9_./+:=@%,-]+")
_PATH = re.compile(r"[\w ./+:=%,-]+")
"""A rule is copied into a shell: no word and no path that a person could misread, or that is a pattern, is named."""

_WITH_VERBS = frozenset(
    {
        "git", "gh", "docker", "podman", "kubectl", "cargo", "go", "npm", "pnpm", "yarn", "uv", "pip", "pip3", "poetry",
        "hatch", "apt", "apt-get", "brew", "systemctl", "make", "just", "terraform", "aws", "gcloud", "dotnet",
    }
)  # fmt: skip
"""Programs whose first word says what they do: a rule about the program alone would allow too much."""


@frozen
class _Wish:
    """A rule with the text that `--allow` takes."""

    text: str
    rule: Rule


def allowing(call: PermissionRequest, decision: Decision, policy: Policy, facts: Facts) -> tuple[str, ...]:
    """The rules, as `--allow` takes them, that together let the call run unasked; empty where none so narrow do.

    The narrowest that is found by trying is returned. A command is never answered with a rule for every command. There
    are none where no allow rule of a person counts.
    """
    if not policy.grants:
        return ()
    for wishes in _tries(call, decision, facts):
        if wishes and len(wishes) <= MOST_RULES:
            rules = (*policy.rules, *(wish.rule for wish in wishes))
            if decide(call, evolve(policy, rules=rules), facts).verdict is Verdict.ALLOW:
                return tuple(wish.text for wish in wishes)
    return ()


def _tries(call: PermissionRequest, decision: Decision, facts: Facts) -> Iterator[list[_Wish]]:
    tool = call.tool
    if facts.command is not None or tool.roles.runs(call.arguments):
        blamed = dict.fromkeys(part.argv for part in decision.parts if part.verdict is not Verdict.ALLOW)
        found = [_of_command(tool.name, argv) for argv in blamed]
        if all(found):
            yield [*{wish.text: wish for wish in found if wish is not None}.values()]
        return
    roots = [root for where in facts.locations for root in facts.bases if is_inside(where.path, (root,))]
    if len(roots) == len(facts.locations) and roots:
        named = [shown_path(where.path, root) for where, root in zip(facts.locations, roots, strict=True)]
        if all(map(readable_path, named)):
            yield [_Wish(f"{tool.name}@{name}", Rule(Verdict.ALLOW, tool.name, path=name)) for name in named]
    hosts = places_of(tool, call.arguments) if tool.name == FETCHES_PAGES else ()
    if hosts and all(_WORD.fullmatch(host) for host in hosts):
        yield [_Wish(f"{tool.name}:{host}", Rule(Verdict.ALLOW, tool.name, host=host)) for host in hosts]
    yield [_Wish(tool.name, Rule(Verdict.ALLOW, tool.name))]


def readable_path(path: str) -> bool:
    """Whether a person reads the path of a rule as it is: short, no pattern, no letter without a mark of its own."""
    return len(path) <= PATH_CHARS and _PATH.fullmatch(path) is not None and display_exact(path) == path


def _of_command(tool: str, argv: Words) -> _Wish | None:
    """The rule for the shortest beginning of a command that is not too wide; None where no beginning will do."""
    rule = next(command_rules(tool, argv), None)
    words = argv[: len(rule.command or ())] if rule is not None else ()
    return None if rule is None else _Wish(f"{tool}:{shlex.join(words)}", rule)


def command_rules(tool: str, argv: Words) -> Iterator[Rule]:
    """The allow rules for beginnings of a command that are not too wide, the shortest and so the widest first."""
    least = 2 if argv[:1] and argv[0].rpartition("/")[2] in _WITH_VERBS and len(argv) > 1 else 1
    for size in range(least, min(len(argv), least + MOST_RULES) + 1):
        words: Words = argv[:size]
        rule = Rule(Verdict.ALLOW, tool, tuple((word,) for word in words))
        if not all(len(word) <= WORD_CHARS and _WORD.fullmatch(word) for word in words):
            return
        if too_wide(rule) is None and not argv[size - 1].startswith("-"):
            yield rule
