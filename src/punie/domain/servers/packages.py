"""The command line that runs a package of a server's description."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias, cast

from attrs import frozen

from punie.domain.servers.inputs import Argument, DescriptionError, Inputs, clean, text

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
_NO_CHECKSUM = "it gives a checksum of its file, which {runner} does not check"

_Arguments: TypeAlias = tuple[Argument, ...]
_Made: TypeAlias = tuple[tuple[str, ...], tuple[str, ...]]
"""Arguments of the program that runs a package, as far as the package, and notes for the person."""


@frozen
class Command:
    """A command line: the program, its arguments and variables, and its package in words; `notes` are warnings."""

    program: str
    args: tuple[str, ...]
    env: Mapping[str, str]
    package: str
    notes: tuple[str, ...] = ()


def command_of(package: Mapping[str, object], inputs: Inputs) -> Command:
    """The command that runs the package. Raises `DescriptionError` for an unknown kind or an inexact version."""
    kind = text(package, "registryType")
    if kind not in _KINDS:
        raise DescriptionError(f"packages of the type {kind!r} are not understood; npm, pypi and oci are")
    _check_transport(package)
    runner, make = _KINDS[kind]
    hint = text(package, "runtimeHint") if "runtimeHint" in package else runner
    runtime = inputs.arguments(package, "runtimeArguments")
    if hint != runner and runtime:
        raise DescriptionError(f"it has arguments for {hint!r}, and Punie runs such packages with {runner}")
    identifier = clean(text(package, "identifier"), "identifier")
    before, notes = make(identifier, package, runtime)
    args = tuple(word for argument in inputs.arguments(package, "packageArguments") for word in argument.words)
    if before[0] == "--from" and (not args or args[0].startswith("-")):
        raise DescriptionError("it does not say first which program of its package is run")
    env = inputs.pairs(package, "environmentVariables", own_names=True)
    if runner == "docker":
        before = (*before[:-1], *(word for name in env for word in ("-e", name)), before[-1])
    if "fileSha256" in package:
        notes = (*notes, _NO_CHECKSUM.format(runner=runner))
    return Command(runner, (*before, *args), env, f"the {kind} package {_said_of(package, identifier)}", notes)


def _check_transport(package: Mapping[str, object]) -> None:
    transport = package.get("transport")
    kind = cast("Mapping[str, object]", transport).get("type") if isinstance(transport, Mapping) else None
    if kind != "stdio":
        raise DescriptionError(f"its package must speak over stdio, not {kind!r}: Punie does not run it at an address")


def _said_of(package: Mapping[str, object], identifier: str) -> str:
    version = f" {package['version']}" if isinstance(package.get("version"), str) else ""
    where = text(package, "registryBaseUrl") if "registryBaseUrl" in package else ""
    return f"{identifier}{version}{f' (of {where})' if where else ''}"


def _exact(package: Mapping[str, object], pattern: re.Pattern[str]) -> str:
    if "version" not in package:
        raise DescriptionError("its package has no version, and without one anything could run")
    version = text(package, "version")
    if not pattern.fullmatch(version) or len(version) > LONGEST_VERSION:
        raise DescriptionError(f"its package's version must be an exact one, not {version!r}")
    return version


def _named(identifier: str, pattern: re.Pattern[str]) -> str:
    if not pattern.fullmatch(identifier) or len(identifier) > 214:
        raise DescriptionError(f"{identifier!r} is no name of a package")
    return identifier


def _npx(identifier: str, package: Mapping[str, object], runtime: _Arguments) -> _Made:
    _only(runtime, {"-y", "--yes", "-q", "--quiet"}, "npx")
    return ("-y", f"{_named(identifier, _NPM_NAME)}@{_exact(package, _NPM_VERSION)}"), ()


def _uvx(identifier: str, package: Mapping[str, object], runtime: _Arguments) -> _Made:
    name, version = _named(identifier, _PYPI_NAME), _exact(package, _PYPI_VERSION)
    words = [word for argument in runtime for word in argument.words]
    exact = {f"{name}=={version}", f"{name}@{version}"}
    if " ".join(words).replace("--from=", "--from ") in {f"--from {one}" for one in exact}:
        return ("--from", f"{name}=={version}"), ()  # the program is the first of the package's arguments
    _only(runtime, {"-q", "--quiet"}, "uvx")
    return (f"{name}@{version}",), ()


def _only(runtime: _Arguments, harmless: set[str], runner: str) -> None:
    for argument in runtime:
        if argument.words != (argument.words[0],) or argument.words[0] not in harmless:
            raise DescriptionError(
                f"it gives {runner} the argument {argument.words[0]!r}, which could change what is run"
            )


def _docker(identifier: str, package: Mapping[str, object], runtime: _Arguments) -> _Made:
    match = _IMAGE.fullmatch(identifier)
    if match is None or len(identifier) > 400:
        raise DescriptionError(f"{identifier!r} is no name of an image")
    version = text(package, "version") if "version" in package else None
    if version is not None and match["tag"] is None and match["digest"] is None:
        match = _IMAGE.fullmatch(f"{identifier}:{version}")
        if match is None:
            raise DescriptionError(f"its image's version must be an exact one, not {version!r}")
    elif version is not None and match["tag"] not in {None, version}:
        raise DescriptionError(f"it names two versions of its image, {match['tag']!r} and {version!r}")
    if match["digest"] is None and not re.search(r"\d", match["tag"] or ""):
        raise DescriptionError(f"its image's version must be an exact one, not {match['tag'] or 'none'!r}")
    options = [word for argument in runtime if argument.words != ("run",) for word in _docker_option(argument)]
    return ("run", "--rm", "-i", *options, match[0]), () if match["digest"] else (_MAY_MOVE,)


def _docker_option(argument: Argument) -> tuple[str, ...]:
    """The option's words. Raises `DescriptionError` for an unknown one, which could take the image as its value."""
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
        raise DescriptionError(f"it gives docker the argument {first!r}, which could change what is run")
    return argument.words


_KINDS: Mapping[str, tuple[str, Callable[[str, Mapping[str, object], _Arguments], _Made]]] = {
    "npm": ("npx", _npx), "pypi": ("uvx", _uvx), "oci": ("docker", _docker),
}  # fmt: skip
