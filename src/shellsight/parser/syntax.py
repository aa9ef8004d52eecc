"""Reserved words, and the separators between commands."""

from __future__ import annotations

import re

from shellsight.line import Script
from shellsight.parser.scan import NotUnderstood, Scan

RESERVED = re.compile(
    r"(if|then|elif|else|fi|while|until|for|do|done|case|esac|function|select|coproc|time|in|\[\[|\]\]|!|\{|\})"
    r"(?=[ \t\n;&|<>)]|\\\n|$)"
)
SEPARATOR = re.compile(r"&&|\|\||;|&|\n")
NOT_BEHIND_AMPERSAND = frozenset({"!", "|", ">", "&"})


def keyword(scan: Scan) -> str:
    """The reserved word that comes next; empty if none does."""
    found = RESERVED.match(scan.text, scan.at, scan.end)
    return found[1] if found else ""


def closes(scan: Scan, closers: frozenset[str]) -> bool:
    """True at the scan's end or at one of the words that end a script."""
    if scan.at >= scan.end:
        return True
    if scan.peek() == ")":
        return ")" in closers
    if scan.looking_at(";;"):
        return ";;" in closers
    return keyword(scan) in closers


def breaks(scan: Scan) -> None:
    """Go past blanks, comments and line breaks."""
    scan.blanks()
    while scan.peek() == "\n":
        scan.next_line()
        scan.blanks()


def separate(scan: Scan) -> str:
    """Go past what separates two commands; a line break is a semicolon."""
    scan.blanks()
    found = SEPARATOR.match(scan.text, scan.at, scan.end)
    if found is None or scan.looking_at(";;"):
        return ""
    separator = found[0]
    if separator == "\n":
        breaks(scan)
        return ";"
    scan.at = found.end()
    if scan.continues() or (separator == "&" and scan.peek() in NOT_BEHIND_AMPERSAND):
        raise NotUnderstood(f"{separator}{scan.peek()}, which shells read in different ways")
    breaks(scan)
    return separator


def expect(scan: Scan, what: str) -> None:
    """Go past a reserved word.

    Raises:
        NotUnderstood: something else comes next.
    """
    if keyword(scan) != what:
        raise NotUnderstood(f"{what} is missing")
    scan.at += len(what)


def body(scan: Scan, closers: frozenset[str]) -> Script:
    """A script that must not be empty, up to its closing word, which is gone past where there is only one."""
    found = scan.script(scan, closers)
    if not found.steps or scan.at >= scan.end:
        raise NotUnderstood(f"a list of commands is empty, or {' or '.join(sorted(closers))} is missing")
    if len(closers) == 1:
        scan.at += len(next(iter(closers)))
    return found
