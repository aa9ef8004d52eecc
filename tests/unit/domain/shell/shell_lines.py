"""A line, read by the real parser and analysed in a small made-up project."""

from __future__ import annotations

from punie.adapters.shell.tree_sitter_bash import TreeSitterBashParser
from punie.domain.shell.analysis import analyse
from punie.domain.shell.report import CommandReport, Standing
from punie.domain.shell.surroundings import Surroundings

PARSER = TreeSitterBashParser()
HERE = Surroundings("/repo", "/home/me", PARSER.parse)


def report(line: str) -> CommandReport:
    return analyse(PARSER.parse(line), HERE, line)


def standing(line: str) -> Standing:
    return report(line).standing
