"""English words brought to a common form, and which of them mean the same where programs are spoken of."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

_ENDINGS = (
    ("ization", "ize"), ("ations", "ate"), ("ation", "ate"), ("nesses", ""), ("ments", ""), ("ment", ""), ("ies", "y"),
    ("sses", "ss"), ("ches", "ch"), ("shes", "sh"), ("xes", "x"), ("ings", ""), ("ing", ""), ("ions", "e"),
    ("ion", "e"), ("ied", "y"), ("ed", ""), ("ers", ""), ("er", ""), ("ly", ""), ("s", ""),
)  # fmt: skip
_SHORTEST = 3
"""What is left of a word has at least so many letters."""

_KEPT = frozenset({"status", "address", "process", "access", "alias", "previous", "issue", "news", "bus", "does"})


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """The word without its ending: not a word of English, but the same for all forms of one."""
    if word in _KEPT or len(word) <= _SHORTEST or word.endswith(("ss", "us")):
        return _bare(word)
    for ending, instead in _ENDINGS:
        left = word.removesuffix(ending)
        if left != word and len(left) + len(instead) >= _SHORTEST and any(char in "aeiouy" for char in left):
            return _bare(_undoubled(left) if not instead and ending[0] in "ei" else left + instead)
    return _bare(word)


def _undoubled(word: str) -> str:
    """`committ` is `commit`; `call` and `pass` stay."""
    return word[:-1] if len(word) > _SHORTEST and word[-1] == word[-2] and word[-1] not in "lsz" else word


def _bare(word: str) -> str:
    return word[:-1] if len(word) > _SHORTEST and word.endswith("e") else word


_SAME: tuple[str, ...] = (
    "create new make add open file",
    "delete remove drop erase destroy discard",
    "change update edit modify alter set adjust",
    "find search look locate query lookup discover",
    "list show display enumerate browse see all",
    "read get fetch retrieve view load open",
    "write save store put",
    "send post publish deliver message notify tell",
    "run execute start launch invoke perform",
    "stop cancel abort kill halt end terminate",
    "move rename relocate",
    "copy duplicate clone fork",
    "directory folder",
    "issue ticket bug problem task",
    "comment reply remark note respond answer",
    "merge combine join integrate",
    "pull pr",
    "request pr",
    "branch line",
    "commit revision change checkin",
    "compare diff difference between versus",
    "history log past recent",
    "table relation",
    "column field attribute",
    "row record entry",
    "schema structure layout shape definition describe",
    "database db sql",
    "page website site url web link",
    "click press tap push",
    "type enter fill input write",
    "picture image screenshot photo capture snapshot",
    "message text chat mail dm",
    "channel room conversation",
    "user member person people colleague account who profile",
    "assign give owner responsible",
    "label tag mark",
    "error exception crash failure fault warning",
    "console log javascript",
    "meeting event appointment calendar",
    "time hour clock date",
    "zone timezone",
    "convert translate turn",
    "remember memory store keep",
    "fact observation knowledge note",
    "entity node thing",
    "relation edge link connection relationship",
    "free available busy slot",
    "size large big byte",
    "pattern glob regex wildcard",
    "replace substitute swap",
    "deploy release ship publish rollout",
    "check verify test validate",
    "repository repo project codebase",
    "author contributor blame wrote",
    "slow performance explain plan",
    "export download dump",
    "import upload",
    "attach attachment",
    "info information metadata detail property",
    "thread discussion",
    "emoji reaction react thumbs",
    "go navigate visit open",
    "wait until appear",
    "close shut finish resolve",
    "symbol function class method identifier definition",
    "reference usage caller occurrence used",
    "format pretty style tidy reformat",
    "workflow pipeline action ci job build",
)
"""Each line is a set of words that may stand for each other. General to programs, written for no catalogue."""


def _synonyms() -> Mapping[str, frozenset[str]]:
    found: dict[str, set[str]] = {}
    for line in _SAME:
        stems = {stem(word) for word in line.split()}
        for one in stems:
            found.setdefault(one, set()).update(stems - {one})
    return {one: frozenset(others) for one, others in found.items()}


SYNONYMS: Mapping[str, frozenset[str]] = _synonyms()
"""By stem: the stems that may be meant as well."""
