"""Secrets within a text, such as a command line that an audit trail shows."""

from __future__ import annotations

import re
from typing import Final

from shellsight.words.secrecy import is_secret_name

TAKEN_OUT: Final = "***"

SENDERS: Final = frozenset({"curl", "wget", "http", "https", "xh"})
"""Programs that send a password or a header along, in the words of their options."""

SENT: Final = re.compile(r"-u|--user|-H|--header|-b|--cookie")
"""The options whose next word such a program sends."""

SENT_WITHIN: Final = re.compile(r"(-[uHb]|--(?:user|header|cookie)=)(.+)", re.DOTALL)
"""One word that is an option and what it sends."""

_NAMED = r"(?:password|passwd|secret|token|api[-_]?key|authorization)"
_VALUE = r"(?:\"[^\"]*(?:\"|\Z)|'[^']*(?:'|\Z)|[^\s\"']+)"
_BESIDE_NAME = re.compile(
    rf"(?i)({_NAMED}[\"']?\s*[=:]\s*(?:bearer\s+|basic\s+)?|\bbearer\s+|--(?:\w+-)?{_NAMED}\s+(?!-)){_VALUE}"
)
_NAMES = ("passw", "secret", "token", "key", "authorization", "bearer")

_VARIABLE = re.compile(rf"(?<![\w.-])([A-Z][A-Z0-9_]*)=({_VALUE})")
_IN_ADDRESS = re.compile(r"(://)[^/@\s]+@")
_SENDING = re.compile(rf"(?<![\w.-])(?:{'|'.join(sorted(SENDERS, key=len, reverse=True))})\s[^;|&\n]*")
_OPTION = re.compile(rf"(\s(?:(?:{SENT.pattern})(?:\s+|=)|-[uHb](?=[^\s-]))){_VALUE}")

TOKEN_MARKS: Final = ("gh", "glpat-", "sk-", "xox", "AKIA", "npm_", "pypi-", "eyJ")
_TOKEN = re.compile(
    r"\b(?:gh[oprsu]_\w{16,}|github_pat_\w{16,}|glpat-[\w-]{16,}|sk-[\w-]{16,}|xox[a-z]-[\w-]{10,}|AKIA[0-9A-Z]{16}"
    r"|npm_\w{16,}|pypi-[\w-]{16,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
)


def without_secrets(text: str) -> str:
    """The text without what is named as a password or a token, looks like one, or is sent as one.

    Most texts have none of the signs that are looked for first: the patterns take ten times as long.
    """
    folded = text.lower()
    if any(word in folded for word in _NAMES):
        text = _BESIDE_NAME.sub(rf"\1{TAKEN_OUT}", text)
    if "=" in text:
        text = _VARIABLE.sub(_assigned, text)
    if "://" in text:
        text = _IN_ADDRESS.sub(rf"\1{TAKEN_OUT}@", text)
    if " -" in text and any(sender in text for sender in SENDERS):
        text = _SENDING.sub(_unsent, text)
    if any(mark in text for mark in TOKEN_MARKS):
        text = _TOKEN.sub(TAKEN_OUT, text)
    return text


def _assigned(found: re.Match[str]) -> str:
    return f"{found[1]}={TAKEN_OUT}" if is_secret_name(found[1]) else found[0]


def _unsent(found: re.Match[str]) -> str:
    return _OPTION.sub(rf"\1{TAKEN_OUT}", found[0])
