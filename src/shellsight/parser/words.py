"""One word: quotes, backslashes, patterns and expansions, by the rules of POSIX 2.2 and 2.6."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable

from shellsight.line import Glob, Literal, Opaque, Piece, Tilde, Word
from shellsight.parser.expansions import backticks, bracketed, dollar
from shellsight.parser.scan import NotUnderstood, Scan

PLAIN = re.compile(r"[A-Za-z0-9_./:,+@%^\]=!#-]+")
WHOLE = re.compile(r"[A-Za-z0-9_./:,+@%^\]!#-][A-Za-z0-9_./:,+@%^\]=!#-]*+(?=[ \t\n;&|)]|\Z)")
PLAIN_IN_QUOTES = re.compile(r'[^"$`\\]+')
PLAIN_IN_TEXT = re.compile(r"[^$`\\]+")
ESCAPED_IN_QUOTES = frozenset('$`"\\')
ESCAPED_IN_TEXT = frozenset("$`\\")
BRACKETS = re.compile(r"\[[!^]?[A-Za-z0-9_.-]+\]")
USER = re.compile(r"~([A-Za-z_][A-Za-z0-9_.-]*)?(?=[/ \t\n;&|<>)]|$)")
PLAIN_BRACES = re.compile(r"\{[A-Za-z0-9_^]*\}")
EQUALS = re.compile(r"=~?|==.*")
# Bytes that some systems take for blanks in the middle of a UTF-8 character.
BLANK_BYTES = frozenset({0x85, 0xA0})


def word(scan: Scan, *, value: bool = False) -> Word:
    """The word that begins here; with `value`, an assignment's, which may be empty.

    Raises:
        NotUnderstood: it reads differently in different shells, or not at all.
    """
    start = scan.at
    if found := WHOLE.match(scan.text, start, scan.end):
        scan.at = found.end()
        text = found[0]
        return Word((Literal(text),), text)
    pieces: list[Piece] = []
    while not scan.word_ends():
        pieces += piece(scan, start)
    if scan.at == start and scan.text.startswith(("<(", ">("), start, scan.end) and not value:
        pieces.append(bracketed(scan, 2, scan.peek()))
        if not scan.word_ends():
            raise NotUnderstood("something right behind a process substitution")
    if scan.at == start and not value:
        raise NotUnderstood("a word is missing")
    if scan.peek() == "(":
        raise NotUnderstood("a parenthesis right behind a word")
    source = scan.text[start : scan.at]
    check_start(source, value=value)
    return Word(tuple(pieces), source)


def check_start(source: str, *, value: bool) -> None:
    """Beginnings of words, and whole words, that are refused."""
    if source in {"{", "}", "[["}:
        raise NotUnderstood(f"{source} where some shells do not take it for a word")
    # `echo ====`: zsh looks for a program whose name begins with `=` as well, and ends the line where there is none.
    if not value and source.startswith("=") and not EQUALS.fullmatch(source):
        raise NotUnderstood("a word that begins with =, which zsh replaces by a program's path")


def piece(scan: Scan, start: int) -> tuple[Piece, ...]:
    """The next pieces of a word that began at `start`."""
    if found := PLAIN.match(scan.text, scan.at, scan.end):
        scan.at = found.end()
        return (Literal(found[0]),)
    mark = scan.text[scan.at]
    if mark in PIECES:
        return PIECES[mark](scan, start)
    return (foreign(scan),)


def foreign(scan: Scan) -> Literal:
    """A character that is not ASCII: a plain one, unless it may be taken for a blank or is invisible."""
    mark = scan.text[scan.at]
    if mark.isascii() or unicodedata.category(mark)[0] in "ZC" or BLANK_BYTES.intersection(mark.encode()):
        raise NotUnderstood(f"the character U+{ord(mark):04X} outside quotes")
    scan.at += 1
    return Literal(mark)


def single(scan: Scan, _start: int) -> tuple[Piece, ...]:
    """Everything up to the next single quote, without special meaning."""
    stop = scan.text.find("'", scan.at + 1, scan.end)
    if stop < 0:
        raise NotUnderstood("a single quote that is not closed")
    text = scan.text[scan.at + 1 : stop]
    scan.at = stop + 1
    return (Literal(text, quoted=True),) if text else ()


def double(scan: Scan, _start: int) -> tuple[Piece, ...]:
    """Up to the closing double quote; `$`, backticks and some backslashes keep their meaning."""
    pieces: list[Piece] = []
    scan.at += 1
    scan.quoted = True
    while scan.peek() != '"':
        pieces += within(scan, PLAIN_IN_QUOTES, ESCAPED_IN_QUOTES)
    scan.quoted = False
    scan.at += 1
    return tuple(pieces)


def within(scan: Scan, plain: re.Pattern[str], escaped: frozenset[str]) -> tuple[Piece, ...]:
    """The next piece within double quotes or a here-document."""
    if found := plain.match(scan.text, scan.at, scan.end):
        scan.at = found.end()
        return (Literal(found[0], quoted=True),)
    mark = scan.peek()
    if mark == "$":
        return (dollar(scan),)
    if mark == "`":
        return (backticks(scan),)
    following = scan.text[scan.at + 1 : min(scan.at + 2, scan.end)]
    if mark != "\\" or not following:
        raise NotUnderstood("a double quote that is not closed")
    if following == "\n":
        return joined(scan, escaped)
    if following in escaped:
        scan.at += 2
        return (Literal(following, quoted=True),)
    scan.at += 1
    return (Literal(mark, quoted=True),)


def joined(scan: Scan, escaped: frozenset[str]) -> tuple[Piece, ...]:
    """A joined line in double quotes; in a here-document it would move the end, and so is not read."""
    if escaped is ESCAPED_IN_TEXT:
        raise NotUnderstood("a joined line in a here-document")
    scan.at += 2
    return ()


def escape(scan: Scan, _start: int) -> tuple[Piece, ...]:
    """A backslash outside quotes: the next character has no special meaning."""
    following = scan.text[scan.at + 1 : min(scan.at + 2, scan.end)]
    if not following:
        raise NotUnderstood("a backslash at the end")
    if not following.isascii() or following in "\n\t":
        raise NotUnderstood("a backslash before something that is not plain")
    scan.at += 2
    return (Literal(following, quoted=True),)


def expansion(scan: Scan, _start: int) -> tuple[Piece, ...]:
    """A dollar sign outside quotes."""
    return (dollar(scan),)


def backtick(scan: Scan, _start: int) -> tuple[Piece, ...]:
    """A backtick outside quotes."""
    return (backticks(scan),)


def pattern(scan: Scan, _start: int) -> tuple[Piece, ...]:
    """`*` and `?`."""
    scan.at += 1
    return (Glob(scan.text[scan.at - 1]),)


def bracket(scan: Scan, start: int) -> tuple[Piece, ...]:
    """`[`: a word by itself, a pattern, or something that depends on the rest of the word."""
    if found := BRACKETS.match(scan.text, scan.at, scan.end):
        scan.at = found.end()
        return (Glob(found[0]),)
    scan.at += 1
    if scan.at - 1 == start and (scan.word_ends() or scan.looking_at("[ ")):
        if scan.looking_at("["):
            scan.at += 1
            return (Literal("[["),)
        return (Literal("["),)
    return (Opaque("[", "a bracket that may begin a pattern"),)


def tilde(scan: Scan, start: int) -> tuple[Piece, ...]:
    """`~` at a word's beginning; behind `=` or `:` shells differ; elsewhere it is itself."""
    if scan.at > start and scan.text[scan.at - 1] not in "=:":
        scan.at += 1
        return (Literal("~"),)
    found = USER.match(scan.text, scan.at, scan.end)
    if found is None or scan.at > start:
        scan.at += 1
        return (Opaque("~", "a tilde that shells read in different ways"),)
    scan.at = found.end()
    return (Tilde(found[1] or ""),)


def brace(scan: Scan, _start: int) -> tuple[Piece, ...]:
    """`{`: itself in `{}` and `@{1}`; otherwise bash may expand it."""
    if found := PLAIN_BRACES.match(scan.text, scan.at, scan.end):
        scan.at = found.end()
        return (Literal(found[0]),)
    scan.at += 1
    if scan.word_ends():
        return (Literal("{"),)
    return (Opaque("{", "brace expansion"),)


def closing_brace(scan: Scan, _start: int) -> tuple[Piece, ...]:
    """`}` outside quotes."""
    scan.at += 1
    return (Literal("}"),)


PIECES: dict[str, Callable[[Scan, int], tuple[Piece, ...]]] = {
    "'": single,
    '"': double,
    "\\": escape,
    "$": expansion,
    "`": backtick,
    "*": pattern,
    "?": pattern,
    "[": bracket,
    "~": tilde,
    "{": brace,
    "}": closing_brace,
}


def heredoc_text(scan: Scan, *, strip: bool) -> Word:
    """The text of a here-document whose delimiter is not quoted: `scan` covers it, and nothing else."""
    pieces: list[Piece] = []
    start = scan.at
    scan.quoted = True
    while scan.at < scan.end:
        pieces += within(scan, PLAIN_IN_TEXT, ESCAPED_IN_TEXT)
    if strip:
        pieces = without_tabs(pieces)
    return Word(tuple(pieces), scan.text[start : scan.end])


def without_tabs(pieces: list[Piece]) -> list[Piece]:
    """The pieces of a `<<-` text, without the tabs that its lines begin with."""
    kept: list[Piece] = []
    fresh = True
    for one in pieces:
        if isinstance(one, Literal):
            text = re.sub(r"(?<=\n)\t+", "", one.text)
            kept.append(Literal(text.lstrip("\t") if fresh else text, quoted=True))
        else:
            kept.append(one)
        fresh = isinstance(one, Literal) and one.text.endswith("\n")
    return kept
