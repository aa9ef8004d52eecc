"""The command lines of npx, uvx and docker that run exactly one version of a package."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias

from attrs import frozen

_NPM_NAME = re.compile(r"(?:@[A-Za-z0-9_~][A-Za-z0-9._~-]*/)?[A-Za-z0-9_~][A-Za-z0-9._~-]*")
_NPM_VERSION = re.compile(r"\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?(?:\+[0-9A-Za-z.-]+)?")
_PYPI_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?")
_PYPI_VERSION = re.compile(
    r"(?:\d+!)?\d+(?:\.\d+)*(?:[-._]?(?:a|b|c|rc|alpha|beta|pre|preview|post|rev|r|dev)[-._]?\d*){0,3}"
    r"(?:\+[a-z0-9]+(?:[-._][a-z0-9]+)*)?",
    re.IGNORECASE,
)
LONGEST_VERSION = 128
_IMAGE = re.compile(
    r"(?P<name>[a-z0-9][a-z0-9.-]*(?::\d+)?(?:/[a-z0-9][a-z0-9._-]*)*?)"
    r"(?::(?P<tag>[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}))?(?P<digest>@sha256:[0-9a-f]{64})?"
)
_DOCKER_SWITCHES = {"--init", "--privileged", "--read-only", "--no-healthcheck", "--publish-all"}
_DOCKER_SHORT = {"-e", "-v", "-p", "-u", "-w", "-m", "-l", "-h"}
"""Short options of docker that take a value: behind any other, the value would be taken for the image."""

_DOCKER_OURS = {"run", "-i", "--interactive", "--rm"}
_MAY_MOVE = "a tag of an image can be moved to another one; only a digest (@sha256:...) pins it"


class PackageError(Exception):
    """A package cannot be run as it is described; the message says why, in words for a person."""


@frozen
class Argument:
    """One argument of a command line; a `name` without a value is a switch, a value without a name an operand."""

    name: str | None
    value: str | None

    @property
    def words(self) -> tuple[str, ...]:
        """The words of the command line: `--name=value`, but `-n` and `value`."""
        if self.name is None or self.value is None:
            return (self.name or self.value or "",)
        return (f"{self.name}={self.value}",) if self.name.startswith("--") else (self.name, self.value)


Arguments: TypeAlias = tuple[Argument, ...]
_Made: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""Arguments of the program that runs a package, as far as the package, and notes for the person."""


def _exact(version: str | None, pattern: re.Pattern[str]) -> str:
    if version is None:
        raise PackageError("its package has no version, and without one anything could run")
    if not pattern.fullmatch(version) or len(version) > LONGEST_VERSION:
        raise PackageError(f"its package's version must be an exact one, not {version!r}")
    return version


def _named(identifier: str, pattern: re.Pattern[str]) -> str:
    if not pattern.fullmatch(identifier) or len(identifier) > 214:
        raise PackageError(f"{identifier!r} is no name of a package")
    return identifier


def _npx(identifier: str, version: str | None, runtime: Arguments) -> _Made:
    _only(runtime, {"-y", "--yes", "-q", "--quiet"}, "npx")
    return ("-y", f"{_named(identifier, _NPM_NAME)}@{_exact(version, _NPM_VERSION)}"), ()


def _uvx(identifier: str, version: str | None, runtime: Arguments) -> _Made:
    name, version = _named(identifier, _PYPI_NAME), _exact(version, _PYPI_VERSION)
    words = [word for argument in runtime for word in argument.words]
    exact = {f"{name}=={version}", f"{name}@{version}"}
    if " ".join(words).replace("--from=", "--from ") in {f"--from {one}" for one in exact}:
        return ("--from", f"{name}=={version}"), ()  # the program is the first of the package's arguments
    _only(runtime, {"-q", "--quiet"}, "uvx")
    return (f"{name}@{version}",), ()


def _only(runtime: Arguments, harmless: set[str], runner: str) -> None:
    for argument in runtime:
        if argument.words != (argument.words[0],) or argument.words[0] not in harmless:
            raise PackageError(f"it gives {runner} the argument {argument.words[0]!r}, which could change what is run")


def _docker(identifier: str, version: str | None, runtime: Arguments) -> _Made:
    match = _IMAGE.fullmatch(identifier)
    if match is None or len(identifier) > 400:
        raise PackageError(f"{identifier!r} is no name of an image")
    if version is not None and match["tag"] is None and match["digest"] is None:
        match = _IMAGE.fullmatch(f"{identifier}:{version}")
        if match is None:
            raise PackageError(f"its image's version must be an exact one, not {version!r}")
    elif version is not None and match["tag"] not in {None, version}:
        raise PackageError(f"it names two versions of its image, {match['tag']!r} and {version!r}")
    if match["digest"] is None and not re.search(r"\d", match["tag"] or ""):
        raise PackageError(f"its image's version must be an exact one, not {match['tag'] or 'none'!r}")
    options = [word for argument in runtime if argument.words != ("run",) for word in _docker_option(argument)]
    return ("run", "--rm", "-i", *options, match[0]), () if match["digest"] else (_MAY_MOVE,)


def _docker_option(argument: Argument) -> tuple[str, ...]:
    """The option's words. Raises `PackageError` for an unknown one, which could take the image as its value."""
    first = argument.words[0]
    if argument.value is None or (argument.name is None and "=" not in first):
        if first in _DOCKER_OURS:
            return ()
        known = first in _DOCKER_SWITCHES
    elif argument.name is None:
        known = re.match(r"--[a-z][a-z-]*=", first) is not None
    else:
        known = argument.name.startswith("--") or argument.name in _DOCKER_SHORT
    if not known:
        raise PackageError(f"it gives docker the argument {first!r}, which could change what is run")
    return argument.words


KINDS: Mapping[str, tuple[str, Callable[[str, str | None, Arguments], _Made]]] = {
    "npm": ("npx", _npx), "pypi": ("uvx", _uvx), "oci": ("docker", _docker),
}  # fmt: skip
"""By the kind of a package, the program that runs it and what makes that program's arguments from identifier, version
and further arguments, as far as the package; that raises `PackageError`."""
