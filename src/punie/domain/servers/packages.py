"""The command line that runs a package of a server's description."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from attrs import frozen

from punie.domain.servers.inputs import DescriptionError, Inputs, clean, text
from shellsight.package_runners import KINDS, PackageError

_NO_CHECKSUM = "it gives a checksum of its file, which {runner} does not check"


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
    if kind not in KINDS:
        raise DescriptionError(f"packages of the type {kind!r} are not understood; npm, pypi and oci are")
    _check_transport(package)
    runner, make = KINDS[kind]
    hint = text(package, "runtimeHint") if "runtimeHint" in package else runner
    runtime = inputs.arguments(package, "runtimeArguments")
    if hint != runner and runtime:
        raise DescriptionError(f"it has arguments for {hint!r}, and Punie runs such packages with {runner}")
    identifier = clean(text(package, "identifier"), "identifier")
    try:
        version = text(package, "version") if "version" in package else None
        before, notes = make(identifier, version, runtime)
    except PackageError as error:
        raise DescriptionError(str(error)) from None
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
