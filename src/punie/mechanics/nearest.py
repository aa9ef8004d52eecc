"""The words that a person may have meant."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(word: str, there: Iterable[str], cutoff: float = 0.6) -> tuple[str, ...]:
    """At most two of the words that are like that one, the nearest first; `cutoff` is a share of equal letters."""
    import difflib  # hardly any process has to guess

    return tuple(difflib.get_close_matches(word, list(there), n=2, cutoff=cutoff))


def did_you_mean(word: str, there: Iterable[str], cutoff: float = 0.6) -> str:
    """A question with the nearest words, after a blank; empty where none is like that one."""
    found = nearest(word, there, cutoff)
    return f" Did you mean {' or '.join(found)}?" if found else ""
