"""A line, read by the real parser and analysed in a small made-up project."""

from __future__ import annotations

from shellsight.analysis import analyse_line
from shellsight.parser.tree_sitter_bash import TreeSitterBashParser
from shellsight.report import CommandReport, Standing
from shellsight.surroundings import Surroundings

PARSER = TreeSitterBashParser()
HERE = Surroundings("/repo", "/home/me", PARSER.parse)


def report(line: str) -> CommandReport:
    return analyse_line(line, HERE)


def standing(line: str) -> Standing:
    return report(line).standing
