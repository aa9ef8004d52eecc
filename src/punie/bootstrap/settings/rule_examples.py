"""Holding a rule's own examples against it: `match` and `not_match` of the settings."""

from __future__ import annotations

from pathlib import PurePath

from attrs import evolve, frozen

from punie.domain.permission.command_policy import allows_part, matches
from punie.domain.permission.decisions import Facts
from punie.domain.permission.rules import Rule
from punie.domain.values.paths import Location, is_inside
from shellsight.analysis import analyse
from shellsight.report import CommandPart, PathUse
from shellsight.secret_names import is_secret
from shellsight.surroundings import ShellParser, Surroundings

PROJECT = "/project"
HOME = "/home/user"
"""Where examples run: no directory of this machine, so that they mean the same everywhere."""


@frozen
class RuleExamples:
    """One rule and what reads its examples; lives as long as the proof."""

    rule: Rule
    parser: ShellParser

    def fault(self, line: str, *, wanted: bool) -> str | None:
        """What is wrong with the example, None where it turns out as its writer says."""
        parts = self._parts(line)
        facts = Facts(cwd=PROJECT, roots=(PROJECT,))
        if self.rule.allows:
            hit = bool(parts) and all(self._allows(part, facts) for part in parts)
        else:
            hit = any(matches(self.rule, part, facts) for part in parts)
        if hit == wanted:
            return None
        return "is not covered by this rule" if wanted else "is covered by this rule all the same"

    def _allows(self, part: CommandPart, facts: Facts) -> bool:
        if self.rule.command is None:
            return self.rule.path is None
        return allows_part(self.rule, part, facts)

    def _parts(self, line: str) -> tuple[CommandPart, ...]:
        report = analyse(self.parser.parse(line), Surroundings(PROJECT, HOME, self.parser.parse))
        return tuple(evolve(part, paths=tuple(_placed(use) for use in part.paths)) for part in report.parts)


def _placed(use: PathUse) -> PathUse:
    if not PurePath(use.path).is_absolute():
        return use
    return evolve(use, where=Location(use.path, is_inside(use.path, (PROJECT,)), is_secret(use.path)))
