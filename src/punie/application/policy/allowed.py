"""The patterns of `allowed.servers` and `allowed.models`: which servers may be started, and which models used."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from punie.domain.servers.server import HttpTransport, ServerConfig, StdioTransport

FORBIDS = "!"


def model_allowed(patterns: Sequence[str], model: str) -> bool:
    """Whether the model of that name may be used."""
    return _allowed(patterns, (model,))


def server_allowed(patterns: Sequence[str], server: ServerConfig) -> bool:
    """Whether the server may be started, and any other way to it as well."""
    ways = (server.transport, server.fallback)
    return all(_allowed(patterns, _words(server.name, way)) for way in ways if way is not None or way is ways[0])


def _words(name: str, way: object) -> tuple[str, ...]:
    match way:
        case StdioTransport(command, args):
            return (name, command, *args)
        case HttpTransport(url):
            return (name, url)
        case _:
            return (name,)


def _allowed(patterns: Sequence[str], words: Sequence[str]) -> bool:
    named = [word.lower() for word in words]  # as any deny rule, a pattern that forbids is read widely
    if any(_fits(pattern[1:].lower(), named) for pattern in patterns if pattern.startswith(FORBIDS)):
        return False
    wanted = [pattern for pattern in patterns if not pattern.startswith(FORBIDS)]
    return not wanted or any(_fits(pattern, words, _within) for pattern in wanted)


def _fits(pattern: str, words: Sequence[str], same: Callable[[str, str], bool] = fnmatchcase) -> bool:
    """Whether the pattern's words are those, one by one; a pattern that is one word is about the name alone."""
    globs = shlex.split(pattern)
    said = words[:1] if len(globs) == 1 else words
    return len(globs) == len(said) and all(map(same, said, globs))


def _within(word: str, glob: str) -> bool:
    """Whether the glob matches the word; in an address `*` reaches neither beyond the scheme nor beyond the host."""
    return all(map(fnmatchcase, _parts(word), _parts(glob))) if "://" in glob else fnmatchcase(word, glob)


def _parts(address: str) -> tuple[str, str, str]:
    scheme, _, rest = address.partition("://")
    host = re.split(r"[/?#\\]", rest, maxsplit=1)[0]
    return scheme, host, rest.removeprefix(host)
