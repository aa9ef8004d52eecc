"""One server's definition, as the world's files write it, made a `ServerConfig`.

What cannot be used becomes a `problem` of that server, never an error: the others still work (S4-05).
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping
from typing import cast
from urllib.parse import urlsplit

from attrs import frozen

from punie.domain.expansion import ExpansionError, Variables
from punie.domain.json_value import json_type
from punie.domain.servers import (
    DEFAULT_CALL_S,
    DEFAULT_STARTUP_S,
    DEFAULT_TTL_S,
    HttpTransport,
    ServerConfig,
    ServerOrigin,
    StdioTransport,
    Transport,
)

LONGEST_NAME = 200
LONGEST_S = 86_400.0
SHORTEST_TIMEOUT_MS = 1_000
"""A shorter `timeout` is meant in seconds, or a mistake; as elsewhere, it is not used."""

_TYPES = {
    "stdio": "stdio", "local": "stdio", "http": "http", "streamable-http": "http", "streamable_http": "http",
    "streamableHttp": "http", "sse": "sse",
}  # fmt: skip


class EntryError(Exception):
    """Why a definition cannot be used, in words for a person."""


@frozen
class EntrySource:
    """Where definitions come from, and what is put in for their variables. `place` is the file."""

    origin: ServerOrigin
    place: str
    variables: Variables


def server_of(name: str, entry: object, source: EntrySource) -> ServerConfig:
    """The server of that definition; one that cannot be used says why in `problem`."""
    given: object = entry
    fields: Mapping[str, object] = cast("Mapping[str, object]", entry) if isinstance(entry, Mapping) else {}
    disabled = fields.get("disabled") is True or fields.get("enabled") is False
    made = ServerConfig(name, None, source.origin, disabled=disabled, place=source.place)
    try:
        _check_name(name)
        _check_object(given)
        written = _transport(fields, lambda text: text, source.variables.workspace)
        shown = written.line
        return _with_times(
            fields,
            transport=_transport(fields, source.variables.expand, source.variables.workspace),
            written=shown,
            made=made,
        )
    except (EntryError, ExpansionError) as error:
        return broken(made, str(error), fields)


def broken(config: ServerConfig, problem: str, fields: Mapping[str, object] | None = None) -> ServerConfig:
    """That server, not to be used for that reason; its command is shown as far as there is one."""
    return ServerConfig(
        config.name, None, config.origin, disabled=config.disabled, problem=f"{config.place}: {problem}",
        written=_as_written(fields or {}) or config.written, place=config.place,
    )  # fmt: skip


def _as_written(fields: Mapping[str, object]) -> str | None:
    command, args = fields.get("command"), fields.get("args")
    if isinstance(command, str):
        words = cast("list[object]", args) if isinstance(args, list) else []
        return shlex.join([command, *(word for word in words if isinstance(word, str))])
    url = fields.get("url")
    return url if isinstance(url, str) else None


def _check_name(name: str) -> None:
    if not name.strip():
        raise EntryError("a server needs a name")
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise EntryError(f"a server's name has at most {LONGEST_NAME} characters, all of them printable")


def _check_object(entry: object) -> None:
    if not isinstance(entry, Mapping):
        raise EntryError(f"its definition must be an object, not {json_type(entry)}")


def _transport(fields: Mapping[str, object], expand: Callable[[str], str], workspace: str) -> Transport:
    kind = _kind(fields)
    if kind == "stdio":
        command = expand(_text(fields, "command"))
        if not command.strip():
            raise EntryError("its command is empty")
        args = tuple(expand(word) for word in _texts(fields, "args"))
        env = {key: expand(value) for key, value in _table(fields, "env").items()}
        return _checked(StdioTransport(command, args, env, _directory(fields, expand, workspace)))
    url = expand(_text(fields, "url"))
    headers = {key: expand(value) for key, value in _table(fields, "headers").items()}
    if any(sign in text for pair in headers.items() for text in pair for sign in "\r\n\0"):
        raise EntryError("a header must be one line")
    _check_url(url)
    return HttpTransport(url, headers, sse=kind == "sse")


def _kind(fields: Mapping[str, object]) -> str:
    said = fields.get("type", fields.get("transport"))
    has_command, has_url = "command" in fields, "url" in fields
    if said is not None:
        if not isinstance(said, str) or said not in _TYPES:
            raise EntryError(f"its type must be stdio, http or sse, not {said!r}")
        return _TYPES[said]
    if has_command and has_url:
        raise EntryError('it has both a command and a url; say which with "type"')
    if not has_command and not has_url:
        raise EntryError("it has neither a command nor a url")
    if has_command:
        return "stdio"
    url = fields["url"]
    return "sse" if isinstance(url, str) and url.split("?")[0].rstrip("/").endswith("/sse") else "http"


def _checked(transport: StdioTransport) -> StdioTransport:
    texts = (transport.command, *transport.args, *transport.env, *transport.env.values(), transport.cwd or "")
    if any("\0" in text for text in texts):
        raise EntryError("no text of it may contain a null character")
    if any(not name or "=" in name for name in transport.env):
        raise EntryError("the name of a variable in env is empty or has an = in it")
    return transport


def _directory(fields: Mapping[str, object], expand: Callable[[str], str], workspace: str) -> str:
    cwd = expand(_text(fields, "cwd")) if fields.get("cwd") is not None else ""
    if not cwd or cwd.startswith(("/", "\\\\")) or cwd[1:3] in {":\\", ":/"}:
        return cwd or workspace
    return f"{workspace.rstrip('/')}/{cwd}"


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:
        usable = False
    if not usable or not url.isprintable() or " " in url:
        raise EntryError("its url is not an http or https address")


def _with_times(
    fields: Mapping[str, object], *, transport: Transport, written: str, made: ServerConfig
) -> ServerConfig:
    ours = fields.get("punie", {})
    if not isinstance(ours, Mapping):
        raise EntryError(f'"punie" must be an object, not {json_type(ours)}')
    ours = cast("Mapping[str, object]", ours)
    timeout_ms = _number(fields, "timeout", 0.0)
    call_s = timeout_ms / 1000 if timeout_ms >= SHORTEST_TIMEOUT_MS else DEFAULT_CALL_S
    return ServerConfig(
        name=made.name,
        transport=transport,
        origin=made.origin,
        disabled=made.disabled,
        startup_s=_number(ours, "startup_timeout_s", DEFAULT_STARTUP_S),
        call_s=_number(ours, "call_timeout_s", min(call_s, LONGEST_S)),
        ttl_s=_number(ours, "ttl_s", DEFAULT_TTL_S),
        include=_texts(ours, "include"),
        exclude=_texts(ours, "exclude"),
        always=("*",) if fields.get("alwaysLoad") is True else _texts(ours, "always"),
        written=written,
        place=made.place,
    )


def _text(fields: Mapping[str, object], key: str) -> str:
    value = fields.get(key)
    if not isinstance(value, str):
        raise EntryError(f"its {key} must be a text, not {json_type(value)}")
    return value


def _texts(fields: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = fields.get(key)
    if value is None:
        return ()
    if not isinstance(value, list) or not all(isinstance(item, str) for item in cast("list[object]", value)):
        raise EntryError(f"its {key} must be a list of texts")
    return tuple(cast("list[str]", value))


def _table(fields: Mapping[str, object], key: str) -> Mapping[str, str]:
    """Names and texts; a number is taken as it is written, what is null is left out."""
    value = fields.get(key)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise EntryError(f"its {key} must be an object of texts, not {json_type(value)}")
    found = {name: item for name, item in cast("Mapping[str, object]", value).items() if item is not None}
    wrong = [name for name, item in found.items() if isinstance(item, bool) or not isinstance(item, (str, int, float))]
    if wrong:
        raise EntryError(f"in its {key}, {wrong[0]!r} must be a text")
    return {name: str(item) for name, item in found.items()}


def _number(fields: Mapping[str, object], key: str, default: float) -> float:
    value = fields.get(key)
    if value is None:
        return default
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < math.inf:
        raise EntryError(f"its {key} must be a number, and not below 0")
    limit = LONGEST_S * (1000 if key == "timeout" else 1)
    return float(min(value, limit)) if value > 0 else default
