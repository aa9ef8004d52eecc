"""git's operands: revisions, `REVISION:PATH` and paths, as far as a rule about paths or an option in disguise goes."""

from __future__ import annotations

import re

from attrs import evolve

from shellsight.report import PathEffect, PathUse
from shellsight.words.arguments import Arg, Kind
from shellsight.words.call import FINE, Call, Outcome, unknown
from shellsight.words.places import here, uses

_WORD = r" +(?!-)[\w@~^{}./:-]+"
_REVISION = re.compile(
    r'"?\$\(git +(?:'
    rf"merge-base(?: +--(?:fork-point|octopus|all))*(?:{_WORD})+"
    rf"|rev-parse(?: +--(?:abbrev-ref|short|verify))*(?:{_WORD})+"
    rf"|describe(?: +--(?:tags|abbrev=0|always|all|exact-match))*(?:{_WORD})*"
    r"|branch +--show-current"
    r")\)"
)
"""Substitutions that, by git's documentation, print a revision, which never begins with a dash."""
_NAMED = r" +(?:origin/)?(?:HEAD|main|master|develop)(?:[~^]\d*)*"
_PLAIN_REVISION = re.compile(
    rf'"?\$\(git +(?:merge-base(?:{_NAMED}){{2}}|rev-parse(?: +--(?:short|verify))*{_NAMED}'
    r'|describe(?: +--(?:tags|abbrev=0|always))*)\)"?'
)
_OPTION_WITH_VALUE = re.compile(r"--[a-z][a-z-]*=")


def disguised(call: Call) -> Outcome:
    """A doubt where a word that is known only once the line runs might become an option: `git log $(cat x)`."""
    for arg in call.args:
        if arg.text == "--":
            break
        if not arg.certain and arg.may_be_option and not (_is_value(arg) or (arg.ran and _REVISION.match(arg.text))):
            return unknown(f"a word that might become an option: {arg.shown}")
    return FINE


def _is_value(arg: Arg) -> bool:
    """Whether it is one word that begins with `--option=`: whatever follows, it stays that option's value."""
    return not arg.many and _OPTION_WITH_VALUE.match(arg.prefix) is not None


def is_plain_revision(arg: Arg) -> bool:
    """Whether the word is a commit that git itself works out of well-known names: no path can come of it."""
    return arg.ran and _PLAIN_REVISION.fullmatch(arg.text) is not None


def shown_places(name: str, call: Call) -> tuple[PathUse, ...]:
    """The places whose content may be shown, for rules about paths: those named, else everything."""
    named = [arg for arg in call.args if not arg.text.startswith("-") and arg.kind is not Kind.UNCERTAIN]
    if name == "grep" and not any(arg.text.startswith("-e") for arg in call.args):
        named = named[1:]
    top = call
    if call.start and call.start not in call.cwds:
        top = evolve(call, cwds=(*call.cwds, call.start))
    # Without a path a revision shows all that it changed.
    whole = not any(":" in arg.text or arg.text == "--" for arg in call.args[:-1]) and name not in _OF_FILES
    whole = whole and not (named and all(":" in arg.text for arg in named))
    whole = whole or any(_MAGIC.match(arg.text) for arg in named)
    found = tuple(use for arg in named for use in uses(top, _path_of(arg), PathEffect.READ, below=True))
    return (*found, *(here(call, PathEffect.READ, below=True) if whole or not found else ()))


_OF_FILES = frozenset({"blame", "annotate", "cat-file", "grep"})
_MAGIC = re.compile(r":[!^(]")


def _path_of(arg: Arg) -> Arg:
    """The path in `HEAD:path`, `:path`, `:(top)path`; a revision by itself counts as a path too, of no file."""
    path = re.split(r"[:)]", arg.text)[-1] or "."
    return (
        Arg(path)
        if arg.certain
        else evolve(arg, text=path, prefix=path if not arg.prefix else re.split(r"[:)]", arg.prefix)[-1])
    )
