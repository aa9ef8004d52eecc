"""The stems of English words, by which tools are found (snowballstemmer)."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, lru_cache
from typing import Any, cast


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """The stem of an English word in lower case; the library is loaded for the first word."""
    return _stemmer()(word)


@cache
def _stemmer() -> Callable[[str], str]:
    import snowballstemmer

    library = cast("Any", snowballstemmer)  # the library has no types
    return cast("Callable[[str], str]", library.stemmer("english").stemWord)
