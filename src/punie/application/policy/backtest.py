"""Recorded decisions, decided again: by the rules of today, which proves the record, and by proposed ones.

A decision is made again from the facts in its row, never from the files of today. A row without facts, or with facts
that cannot be read, is counted and never guessed about.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias, cast

from attrs import evolve, frozen

from punie.application.desk.recorded_facts import RecordedCase, case_of, digest_of
from punie.domain.errors import SettingsError
from punie.domain.permission.audit import AuditRow
from punie.domain.permission.decisions import Decision, Finding, Policy
from punie.domain.permission.policy import decide
from punie.domain.permission.rules import AnsweredBy, Rule, Verdict
from punie.domain.values.json_value import JsonObject, array_in
from punie.domain.values.person import UNNAMED, Person

PolicyFor: TypeAlias = Callable[[str], Policy]
"""The policy for a session in that absolute directory."""


@frozen
class PastDecision:
    """A row whose decision can be made again. `final` and `answered_by` are what came of it, `person` whose it was."""

    number: int
    tool: str
    title: str
    final: Verdict
    answered_by: AnsweredBy
    case: RecordedCase
    person: Person = UNNAMED

    def rules(self, policies: PolicyFor) -> tuple[Rule, ...]:
        """The rules for its directory and its person."""
        return policies(self.case.facts.cwd).meant_for(self.person).rules

    def under(self, policies: PolicyFor) -> Decision:
        """The decision in the recorded mode, under the policy for its directory."""
        case, policy = self.case, policies(self.case.facts.cwd)
        own = evolve(policy.meant_for(self.person).in_mode(case.mode), protected=case.protected, private=case.private)
        return decide(case.request, own, case.facts)

    @property
    def denied_by_person(self) -> bool:
        """Whether a person was asked and refused."""
        return self.answered_by is AnsweredBy.PERSON and self.final is Verdict.DENY


Decided: TypeAlias = tuple[PastDecision, Decision]
"""A decision of the past with the one that it would be now."""


@frozen
class Change:
    """A decision that would be another one."""

    past: PastDecision
    was: Finding
    now: Finding


@frozen
class Backtest:
    """The outcome. `rows` are all rows of the trail.

    `undecided` are those without usable facts, and those of directories whose settings cannot be read. `agree` counts
    equal verdicts by the same rule, `other_rule` equal verdicts by another one. `unreproduced` are rows whose rules are
    those of today and whose decision is another one all the same: the record, or Punie, changed. `counts` are the
    verdicts now, and `past` has each row that was decided.
    """

    rows: int
    undecided: int
    agree: int
    other_rule: int
    changed: tuple[Change, ...]
    unreproduced: tuple[Change, ...]
    counts: Mapping[Verdict, int]
    past: tuple[Decided, ...]


def past_decisions(rows: Iterable[AuditRow], since: float = 0.0) -> Iterator[PastDecision | None]:
    """The rows from that moment (epoch seconds) on, in their order; None for one that cannot be decided again."""
    for row in rows:
        try:
            record = cast("JsonObject", json.loads(row.text))
            if cast("float", record["at"]) >= since:
                yield _past(row.number, record)
        except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
            yield None


def _past(number: int, record: JsonObject) -> PastDecision | None:
    kept = record.get("facts")
    if not isinstance(kept, Mapping):
        return None
    tool = str(record["tool"])
    return PastDecision(
        number, tool, str(record["title"]), Verdict(record["verdict"]), AnsweredBy(record["answered_by"]),
        case_of(tool, cast("Mapping[str, object]", kept)),
        Person(str(record.get("person", "")), map(str, array_in(record.get("groups")))),
    )  # fmt: skip


def backtest(past: Iterable[PastDecision | None], today: PolicyFor, proposed: PolicyFor | None = None) -> Backtest:
    """Decide all of them again under the policy of `today` or, where there is one, under that proposed in its place.

    Without a proposal a decision is compared with the recorded one, else with that of today.
    """
    rules: dict[tuple[str, Person], str] = {}
    found: list[Decided] = []
    changed, unreproduced, counts = list[Change](), list[Change](), Counter[Verdict]()
    rows = agree = other_rule = 0
    for row in past:
        rows += 1
        decided = _again(row, today)
        if decided is None:
            continue
        one, now = decided
        was: Finding = one.case.was
        differs = (now.verdict, now.rule) != (was.verdict, was.rule)
        if differs and one.case.altered:
            continue  # a rule may be about the words that were taken out
        whose = one.case.facts.cwd, one.person
        if whose not in rules:
            rules[whose] = digest_of(one.rules(today))
        if differs and one.case.by == rules[whose]:
            unreproduced.append(Change(one, was, now))
        if proposed is not None:
            was, now = now, one.under(proposed)
        found.append((one, now))
        counts[now.verdict] += 1
        agree += (now.verdict, now.rule) == (was.verdict, was.rule)
        other_rule += now.verdict is was.verdict and now.rule != was.rule
        if now.verdict is not was.verdict:
            changed.append(Change(one, was, now))
    return Backtest(
        rows, rows - len(found), agree, other_rule, tuple(changed), tuple(unreproduced), counts, tuple(found)
    )


def _again(row: PastDecision | None, policies: PolicyFor) -> Decided | None:
    """The decision made again; None for one that cannot be, as things are in its directory today."""
    try:
        return None if row is None else (row, row.under(policies))
    except SettingsError:
        return None
