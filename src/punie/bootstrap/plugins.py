"""Installed plug-ins: entry points of other packages, and of the engines that come in Punie's own wheel.

Nothing here runs before `initialize` is answered, since reading the installed packages is slow.
An entry point of `punie.tool_providers` is a callable `(cwd) -> ToolProvider & ToolExecutor`, called once a session.
One of `punie.engines` is a callable `(rest) -> Engine`, chosen by the model name `ENTRY-POINT:rest`; the setting
`engine = "ENTRY-POINT"` has it run the models of providers, and then `rest` is the whole name `provider:name`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any

from attrs import field, frozen

from punie.application.offer.discover import PlugIn
from punie.domain.errors import EngineError, EngineErrorKind
from punie.domain.values.display import one_line
from punie.ports.engine import Engine

PROVIDERS = "punie.tool_providers"
ENGINES = "punie.engines"


@frozen
class PlugIns:
    """The installed plug-ins; lives as long as the process.

    `engines` maps a name to a function that imports the engine's maker, called when a model of that name is used.
    """

    providers: tuple[PlugIn, ...] = ()
    engines: Mapping[str, Callable[[], object]] = field(factory=lambda: MappingProxyType({}))

    def engine(self, model: str) -> Engine | None:
        """The engine of a model named `ENTRY-POINT:rest`; None where no plug-in has that name.

        Raises `EngineError` where the plug-in cannot be used; another engine is never used instead.
        """
        name, _, rest = model.partition(":")
        return self.chosen(name, rest) if name in self.engines else None

    def chosen(self, name: str, rest: str) -> Engine:
        """The engine that the plug-in of that name makes for `rest`. Raises `EngineError` where it cannot be used."""
        if name not in self.engines:
            raise _missing(name, self.engines)
        try:
            engine = _callable(self.engines[name]())(rest)
        except EngineError:
            raise
        except Exception as error:
            raise _unusable(name, f"{type(error).__name__}: {error}") from error
        if not isinstance(engine, Engine):
            raise _unusable(name, f"it made a {type(engine).__name__}, which has no open()")
        return engine


def scan(log: logging.Logger) -> PlugIns:
    """The installed plug-ins, with the tool providers imported. Blocks.

    A provider that cannot be imported, or that uses a taken name, is named in the log and left out.
    """
    from importlib.metadata import entry_points

    installed = entry_points()  # one look at the packages, each of which is a file to open
    providers: dict[str, PlugIn] = {}
    for point in sorted(installed.select(group=PROVIDERS), key=lambda point: point.name):
        try:
            make = _callable(point.load())
        except Exception as error:  # noqa: BLE001 - a fault in another package must not end the agent
            log.warning("plug-in %s is left out: %s", point.name, one_line(f"{type(error).__name__}: {error}", 400))
            continue
        if point.name in providers:
            log.warning("plug-in %s of %s is left out: another has its name", point.name, point.value)
        else:
            providers[point.name] = PlugIn(point.name, make)
    return PlugIns(tuple(providers.values()), _engines(installed.select(group=ENGINES)))


def installed_engines() -> Mapping[str, Callable[[], object]]:
    """The importers of engine makers by name; of two packages with one name, the first that is found is used."""
    from importlib.metadata import entry_points

    return _engines(entry_points(group=ENGINES))


def _engines(points: Iterable[Any]) -> Mapping[str, Callable[[], object]]:
    return MappingProxyType({point.name: point.load for point in reversed(tuple(points))})


def _callable(found: object) -> Callable[[str], object]:
    if not callable(found):
        raise TypeError(f"it names a {type(found).__name__}, which cannot be called")
    return found


def _missing(name: str, installed: Iterable[str]) -> EngineError:
    known = ", ".join(sorted({"pydantic-ai", *installed}))
    return EngineError(
        EngineErrorKind.CONFIGURATION.value,
        f"No engine of the name {name!r} is installed.",
        f"Set engine to one of {known}, or install the package that brings it.",
    )


def _unusable(name: str, why: str) -> EngineError:
    return EngineError(
        EngineErrorKind.CONFIGURATION.value,
        f"The engine plug-in {name!r} cannot be used ({one_line(why, 400)}).",
        "Repair or remove that package, or choose another model.",
    )
