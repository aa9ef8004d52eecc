"""Redirections and here-documents."""

from __future__ import annotations

import re

from shellsight.line import Literal, Redirect, Word
from shellsight.parser.scan import NotUnderstood, Scan
from shellsight.parser.words import heredoc_text, word

OPERATOR = re.compile(r"([0-9]*)(&>>|&>|<<<|<<-|<<|<>|<&|<|>>|>&|>\||>)")
MAY_BEGIN = frozenset("<>&0123456789")
NUMBERS_IN_ZSH = re.compile(r"<[0-9]*-[0-9]*>")
DELIMITER = re.compile(r"""([A-Za-z0-9_.-]+)|'([A-Za-z0-9_. -]+)'|"([A-Za-z0-9_. -]+)"|\\([A-Za-z0-9_.-]+)""")
BOTH = frozenset({"&>", "&>>"})


def begins(scan: Scan) -> bool:
    """True if a redirection comes next (and not a process substitution, nor a number that is a word)."""
    if scan.peek() not in MAY_BEGIN:
        return False
    found = OPERATOR.match(scan.text, scan.at, scan.end)
    return found is not None and not scan.looking_at("<(") and not scan.looking_at(">(")


def redirect(scan: Scan) -> Redirect:
    """Read one redirection.

    Raises:
        NotUnderstood: it reads differently in different shells, or not at all.
    """
    start = scan.at
    found = OPERATOR.match(scan.text, start, scan.end)
    if found is None:
        raise NotUnderstood("a redirection is missing")
    descriptor, operator = found[1], found[2]
    check(scan, start, descriptor, operator)
    scan.at = found.end()
    if scan.peek() in {"!", "|", "&", "("}:
        raise NotUnderstood(f"{operator}{scan.peek()}, which shells read in different ways")
    scan.blanks()
    if operator in {"<<", "<<-"}:
        return heredoc(scan, start, descriptor, operator)
    begun = scan.at
    target = word(scan)
    scan.seen.words.append((begun, scan.at))
    return Redirect(operator, target, descriptor, scan.text[start : scan.at])


def check(scan: Scan, start: int, descriptor: str, operator: str) -> None:
    """Words that may not come before a redirection."""
    if operator in BOTH:
        raise NotUnderstood(f"{operator}, which dash reads as & (in the background) and a command of its own")
    if len(descriptor) > 1:
        raise NotUnderstood("a number before a redirection that not all shells take for a descriptor")
    if start and scan.text[start - 1] == "}" and not descriptor:
        raise NotUnderstood("a brace right before a redirection")
    if NUMBERS_IN_ZSH.match(scan.text, start + len(descriptor), scan.end):
        raise NotUnderstood("<1-2>, which is a pattern in zsh")


def heredoc(scan: Scan, start: int, descriptor: str, operator: str) -> Redirect:
    """Read a here-document: its end's word here, its text behind this line's break, which is gone past later."""
    found = DELIMITER.match(scan.text, scan.at, scan.end)
    if found is None:
        raise NotUnderstood("a here-document whose end is not a plain word")
    begun = scan.at
    scan.at = found.end()
    if not scan.word_ends() or scan.peek() == "(":
        raise NotUnderstood("a here-document whose end is not a plain word")
    scan.seen.heredocs.append((begun, scan.at))
    delimiter = next(group for group in found.groups() if group)
    text = body(scan, delimiter, quoted=found[1] is None, strip=operator == "<<-")
    return Redirect(operator, text, descriptor, scan.text[start : scan.at])


def body(scan: Scan, delimiter: str, *, quoted: bool, strip: bool) -> Word:
    """The text: from the break of this line, or from where the text before it ends."""
    if scan.line_break < 0:
        scan.line_break = scan.text.find("\n", scan.at, scan.end)
        scan.resume = scan.line_break + 1
    if scan.line_break < 0:
        raise NotUnderstood("a here-document without a text")
    begun = scan.resume
    end = end_of(scan, delimiter, strip=strip)
    raw = scan.text[begun:end]
    if not quoted:
        return heredoc_text(scan.part(begun, end), strip=strip)
    text = re.sub(r"(?m)^\t+", "", raw) if strip else raw
    return Word((Literal(text, quoted=True),) if text else (), raw)


def end_of(scan: Scan, delimiter: str, *, strip: bool) -> int:
    """The end of the text; reading resumes behind the delimiter's line."""
    while scan.resume < scan.end:
        begun = scan.resume
        stop = scan.text.find("\n", begun, scan.end)
        stop = scan.end if stop < 0 else stop
        line = scan.text[begun:stop]
        scan.resume = min(stop + 1, scan.end)
        if (line.lstrip("\t") if strip else line) == delimiter:
            return begun
    raise NotUnderstood(f"a here-document that does not end with {delimiter}")
