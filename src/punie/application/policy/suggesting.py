"""Suggested rules: the fewest that would have spared the most questions, by what people answered to those.

A rule is suggested only for calls that a person, or a grant of a person, allowed. No rule is suggested that matches a
call which a person denied, a command that is dangerous or not understood, a secret or a place outside; and none for
the read-only mode.
"""

from __future__ import annotations

import json
import posixpath
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeAlias

from attrs import evolve, frozen

from punie.application.desk.denials import command_rules, readable_path
from punie.application.desk.rule_examples import HOME, PROJECT
from punie.application.policy.backtest import Decided, PastDecision, PolicyFor
from punie.application.policy.written_rules import RUNS_COMMANDS
from punie.domain.permission.command_policy import allows_part
from punie.domain.permission.decisions import Decision
from punie.domain.permission.policy import decide
from punie.domain.permission.rules import AnsweredBy, Mode, Rule, Verdict, Words
from shellsight.analysis import analyse_argv
from shellsight.report import CommandPart, Effect, Standing
from shellsight.surroundings import Surroundings

MOST_RULES = 20
MOST_TITLES = 3
_MODES = frozenset({Mode.ASK, Mode.ACCEPT_EDITS, Mode.AUTO})
_BY_MODE = "mode:"

Need: TypeAlias = tuple[str, ...]
"""One thing that was asked about: a tool and the words of a command, or a tool and a path."""

_Groups: TypeAlias = "defaultdict[frozenset[Need], list[PastDecision]]"
"""The calls that were asked about the same things."""


@frozen
class Suggestion:
    """A rule, the number of questions that it spares beside those before it, and titles of some of the calls."""

    rule: Rule
    spares: int
    titles: tuple[str, ...]

    @property
    def toml(self) -> str:
        """The rule as a settings file takes it."""
        rule = self.rule
        lines = ['decision = "allow"', f"tool = {_toml(rule.tool)}"]
        if rule.command is not None:
            lines.append(f"command = {_toml([words[0] for words in rule.command])}")
        if rule.path is not None:
            lines.append(f"path = {_toml(rule.path)}")
        lines.append(f"mode = {_toml(sorted(mode.value for mode in rule.modes))}")
        return "\n".join(("[[permissions.rules]]", *lines))


def _toml(value: object) -> str:
    """As JSON, but for letters beyond 16 bits, which JSON escapes in two halves that TOML does not take."""
    return json.dumps(value, ensure_ascii=False)


@frozen
class _Asked:
    """A question that an allow rule could spare: what it was about."""

    past: PastDecision
    needs: frozenset[Need]


def suggested(past: Sequence[Decided], policies: PolicyFor) -> tuple[Suggestion, ...]:
    """The rules, the one that spares most first; `policies` are those by which `past` was decided."""
    asked = [one for each, now in past if _by_people(each) and (one := _asked(each, now)) is not None]
    groups: _Groups = defaultdict(list)
    for one in asked:
        groups[one.needs].append(one.past)
    refused = _Refused([each for each, _ in past])
    safe = {rule: needs for rule, needs in _candidates(asked).items() if not refused.by(rule)}
    chosen: list[Suggestion] = []
    covered: frozenset[Need] = frozenset()
    while len(chosen) < MOST_RULES:
        best = _best(safe, groups, covered, tuple(each.rule for each in chosen), policies)
        if best is None:
            break
        rule, needs, found = best
        covered |= needs
        spared = [each for group in found for each in groups.pop(group)]
        titles = tuple(dict.fromkeys(each.title for each in spared))[:MOST_TITLES]
        chosen.append(Suggestion(rule, len(spared), titles))
    return tuple(chosen)


def _best(
    safe: dict[Rule, frozenset[Need]], groups: _Groups, covered: frozenset[Need], before: tuple[Rule, ...],
    policies: PolicyFor,
) -> tuple[Rule, frozenset[Need], set[frozenset[Need]]] | None:  # fmt: skip
    """The rule that spares most beside those before it, what it answers, and the groups that it spares.

    The rule is taken out of `safe`, and so is each better one that will not do.
    """
    within: defaultdict[Need, list[frozenset[Need]]] = defaultdict(list)
    for group in groups:
        for need in group:
            within[need].append(group)
    spared = {rule: _spared(needs, covered, within) for rule, needs in safe.items()}
    for rule in sorted(safe, key=lambda one: _worth(one, spared[one], groups), reverse=True):
        found = spared[rule]
        if not found:
            return None
        needs, rules = safe.pop(rule), (*before, rule)
        mine = (each for group in found for each in groups[group])
        if _stays_harmless(rule) and all(_spares(each, rules, policies) for each in mine):  # else more asks as well
            return rule, needs, found
    return None


def _spared(
    rules_needs: frozenset[Need], covered: frozenset[Need], within: Mapping[Need, list[frozenset[Need]]]
) -> set[frozenset[Need]]:
    """The groups of questions that a rule answers together with those that were chosen."""
    return {needs for need in rules_needs for needs in within.get(need, ()) if needs - covered <= rules_needs}


def _by_people(past: PastDecision) -> bool:
    return past.final is Verdict.ALLOW and past.answered_by in _BY_PEOPLE


_BY_PEOPLE = frozenset({AnsweredBy.PERSON, AnsweredBy.GRANT})


def _asked(past: PastDecision, now: Decision) -> _Asked | None:
    """The question; None where the call was not asked about, or where more than its mode asks."""
    if now.verdict is not Verdict.ASK or past.case.mode not in _MODES:
        return None
    tool, facts = past.tool, past.case.facts
    asking = [part for part in now.parts if part.verdict is Verdict.ASK]
    if any(not part.rule.startswith(_BY_MODE) for part in (*asking, now)):
        return None
    if asking:
        return _Asked(past, frozenset((tool, *part.argv) for part in asking))
    if facts.command is not None or not facts.locations:
        return None
    return _Asked(past, frozenset((tool, where.path) for where in facts.locations))


def _candidates(asked: Iterable[_Asked]) -> dict[Rule, frozenset[Need]]:
    """The rules that would answer something that was asked, each with all that it answers."""
    found: defaultdict[Rule, set[Need]] = defaultdict(set)
    for one in asked:
        for need in one.needs:
            for rule in _rules_for(one.past, need):
                found[rule].add(need)
    return {rule: frozenset(needs) for rule, needs in found.items()}


def _rules_for(past: PastDecision, need: Need) -> Iterator[Rule]:
    tool, *words = need
    facts = past.case.facts
    if facts.command is not None:
        if tool != RUNS_COMMANDS:
            return  # a rule about commands is for that tool alone
        parts = [part for part in facts.command.parts if part.argv == tuple(words)]
        for rule in command_rules(tool, tuple(words)):
            if all(allows_part(rule, part, facts) for part in parts):
                yield evolve(rule, modes=_MODES)
        return
    root = next((root for root in facts.bases if words[0].startswith(f"{root}/")), None)
    folder = posixpath.dirname(words[0])
    while root is not None and folder.startswith(f"{root}/"):  # never for everything in a project
        if readable_path(folder):
            yield Rule(Verdict.ALLOW, tool, path=f"{folder}/**", modes=_MODES)
        folder = posixpath.dirname(folder)


_MORE: tuple[Words, ...] = (
    ("unheard-of",), ("--unheard-of",), ("-f",), ("--force",), ("--amend",), ("-s", "unheard-of"), ("@unheard-of",),
)  # fmt: skip
"""Words that may follow where a rule ends: where one of them is not understood, the rule lets through what is not."""


def _stays_harmless(rule: Rule) -> bool:
    """Whether the rule's command is understood, and everyday, whatever words follow it."""
    if rule.command is None:
        return True
    words, here = tuple(choice[0] for choice in rule.command), Surroundings(PROJECT, HOME)
    return all(analyse_argv((*words, *more), here).standing <= Standing.ORDINARY for more in _MORE)


class _Refused:
    """The commands and paths that no suggested rule may match.

    A person denied them, or they are dangerous, or nothing is known of what they do.
    """

    def __init__(self, past: Sequence[PastDecision]) -> None:
        self._commands: set[Need] = set()
        for one, part in _parts(past):
            if one.denied_by_person or _is_doubtful(part):
                self._commands.update((one.tool, *part.argv[:size]) for size in range(1, len(part.argv) + 1))
        self._folders: set[Need] = set()
        for one in past:
            for where in one.case.facts.locations:
                if one.denied_by_person or where.secret or not where.inside:
                    self._folders.update((one.tool, folder) for folder in _around(where.path))

    def by(self, rule: Rule) -> bool:
        """Whether the rule matches any of them."""
        if rule.command is not None:
            return (rule.tool, *(choice[0] for choice in rule.command)) in self._commands
        return (rule.tool, (rule.path or "").removesuffix("/**")) in self._folders


def _around(path: str) -> Iterator[str]:
    """The absolute path and every folder around it."""
    while path.strip("/"):
        yield path
        path = posixpath.dirname(path)


def _parts(past: Iterable[PastDecision]) -> Iterator[tuple[PastDecision, CommandPart]]:
    for one in past:
        yield from ((one, part) for part in (one.case.facts.command.parts if one.case.facts.command else ()))


def _is_doubtful(part: CommandPart) -> bool:
    return part.standing > Standing.ORDINARY or Effect.SECRETS in part.effects


def _worth(
    rule: Rule, found: Iterable[frozenset[Need]], groups: Mapping[frozenset[Need], list[PastDecision]]
) -> tuple[int, int, object]:
    """More spared questions are better, then the narrower rule."""
    narrow = len(rule.command or ()) + (rule.path or "").count("/")
    return sum(len(groups[needs]) for needs in found), narrow, rule.place


def _spares(past: PastDecision, rules: tuple[Rule, ...], policies: PolicyFor) -> bool:
    """Whether these rules together let the call run unasked."""
    case, policy = past.case, policies(past.case.facts.cwd)
    own = evolve(
        policy.in_mode(case.mode), rules=(*past.rules(policies), *rules), protected=case.protected, private=case.private
    )
    return decide(case.request, own, case.facts).verdict is Verdict.ALLOW
