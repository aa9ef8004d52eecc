"""The auth method of type `terminal`: the client runs our command again, in a terminal, and a person sets up a model.

ACP v1 and v2, "Authentication": its `args` are appended to the command that the client is configured with, and it is
offered only to clients that said they can do that. `authenticate` is never called for it.
"""

from __future__ import annotations

import sys
from typing import TypeVar

import msgspec
from msgspec import Raw

SETUP_METHOD = "setup-model"
_NAME = "Set up a model"
_ARGS = ("--setup-model",)
NO_CAPABILITIES = Raw(b"{}")
_META = "terminal-auth"
"""The key under which Zed says the same, and reads a whole command line."""


class _Auth(msgspec.Struct, gc=False):
    terminal: Raw = Raw(b"false")


class _Meta(msgspec.Struct, gc=False):
    terminal_auth: Raw = msgspec.field(default=Raw(b"false"), name=_META)


class _Capabilities(msgspec.Struct, gc=False):
    auth: Raw = Raw(b"{}")
    meta: Raw = msgspec.field(default=Raw(b"{}"), name="_meta")


def terminal_methods(capabilities: Raw, id_key: str) -> list[dict[str, object]]:
    """The method, as one entry of `authMethods`, for a client with these capabilities; none for one without.

    `id_key` is what that version of ACP calls the method's id. What a client wrote amiss there counts as not said.
    """
    said = _read(capabilities, _Capabilities) or _Capabilities()
    auth, meta = _read(said.auth, _Auth), _read(said.meta, _Meta)
    by_meta = meta is not None and _is_said(meta.terminal_auth)
    if not by_meta and (auth is None or not _is_said(auth.terminal)):
        return []
    method: dict[str, object] = {
        "type": "terminal",
        id_key: SETUP_METHOD,
        "name": _NAME,
        "description": "Choose a model in a terminal. It is tried, and its key is kept for you.",
        "args": list(_ARGS),
    }
    if by_meta:
        # Without -P Python would look for modules in the project first.
        command: dict[str, object] = {"command": sys.executable, "args": ["-P", "-m", "punie", "acp", *_ARGS]}
        method["_meta"] = {_META: {**command, "env": {}, "label": _NAME}}
    return [method]


T = TypeVar("T")


def _read(raw: Raw, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(raw, type=kind)
    except (msgspec.DecodeError, RecursionError):
        return None


def _is_said(raw: Raw) -> bool:
    """`true` as v1 has it, an object as v2 has it."""
    text = bytes(raw).strip()
    return text == b"true" or text.startswith(b"{")
