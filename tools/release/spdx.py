"""Licence expressions as SPDX writes them: `MIT`, `Apache-2.0 OR GPL-2.0-or-later`, `(A OR B) AND C WITH D`."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Collection

TOKEN = re.compile(r"\s*(\(|\)|[A-Za-z0-9.+-]+)")
WORDS = {"AND", "OR", "WITH", "(", ")"}


def fits(expression: str, allowed: Collection[str]) -> bool:
    """Whether what is offered so may be used: one side of OR is enough, AND takes both and binds tighter.

    A licence WITH an exception has to be allowed by that whole name. Raises `ValueError` where it cannot be read.
    """
    tokens = deque(found[1] for found in TOKEN.finditer(expression))
    if "".join(tokens) != re.sub(r"\s", "", expression):
        raise ValueError(expression)
    good = _either(tokens, allowed)
    if tokens:
        raise ValueError(expression)
    return good


def _either(tokens: deque[str], allowed: Collection[str]) -> bool:
    good = _both(tokens, allowed)
    while _taken(tokens, "OR"):
        good = _both(tokens, allowed) or good
    return good


def _both(tokens: deque[str], allowed: Collection[str]) -> bool:
    good = _one(tokens, allowed)
    while _taken(tokens, "AND"):
        good = _one(tokens, allowed) and good
    return good


def _one(tokens: deque[str], allowed: Collection[str]) -> bool:
    if _taken(tokens, "("):
        good = _either(tokens, allowed)
        if not _taken(tokens, ")"):
            raise ValueError("a bracket is left open")
        return good
    name = _name(tokens)
    return (f"{name} WITH {_name(tokens)}" if _taken(tokens, "WITH") else name) in allowed


def _name(tokens: deque[str]) -> str:
    if not tokens or tokens[0] in WORDS:
        raise ValueError("a licence is missing")
    return tokens.popleft()


def _taken(tokens: deque[str], word: str) -> bool:
    found = bool(tokens) and tokens[0] == word
    if found:
        tokens.popleft()
    return found
