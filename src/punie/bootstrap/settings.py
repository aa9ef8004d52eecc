"""The settings of one session: the user's file, the project's, `PUNIE_*`, flags, in rising strength.

The project's file may only tighten until it can be trusted, which a later version brings: what would loosen is left out
with a warning. Anything that cannot be understood raises `SettingsError`: no session starts on half-read settings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, cast

from attrs import field, fields, frozen

from punie.bootstrap.settings_files import project_settings_file, read_settings, user_settings_file
from punie.domain.discovery import LocalTools
from punie.domain.errors import SettingsError
from punie.domain.limits import CallLimits, Limits
from punie.domain.turn import TurnLimits

_log = logging.getLogger("punie.settings")


@frozen
class Settings:
    """What is in force, and where each value came from (`origins`, by dotted key); lives as long as a session."""

    model: str | None = None
    local_tools: LocalTools = LocalTools.AUTO
    disabled_tools: frozenset[str] = frozenset()
    limits: Limits = field(factory=Limits)
    turn_limits: TurnLimits = field(factory=TurnLimits)
    origins: Mapping[str, str] = field(factory=lambda: MappingProxyType({}))


def _text(value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError("expected a text that is not empty")
    return value.strip()


def _local(value: object) -> LocalTools:
    try:
        return LocalTools(value)
    except ValueError:
        raise ValueError("expected auto, never or always") from None


def _names(value: object) -> tuple[str, ...]:
    words = value.split(",") if isinstance(value, str) else value
    listed = cast("list[object]", words) if isinstance(words, (list, tuple)) else [None]
    names = [word.strip() for word in listed if isinstance(word, str)]
    if len(names) < len(listed):
        raise ValueError("expected a list of tool names")
    return tuple(name for name in names if name)


def _positive(value: object) -> float:
    try:
        number = float(value) if isinstance(value, (int, float, str)) and not isinstance(value, bool) else 0.0
    except (ValueError, OverflowError):
        number = 0.0
    if not 0 < number < float("inf"):
        raise ValueError("expected a number above zero")
    return number


def _whole(value: object) -> int:
    number = _positive(value)
    if number % 1:
        raise ValueError("expected a whole number above zero")
    return int(number)


_KEYS: Mapping[str, Callable[[object], object]] = {
    "model": _text,
    "tools.local": _local,
    "tools.disabled": _names,
    "limits.time_s": _positive,
    "limits.output_bytes": _whole,
    "limits.input_bytes": _whole,
    "limits.files_touched": _whole,
    "limits.memory_mb": _whole,
    "limits.concurrent_calls": _whole,
    "turn.max_requests": _whole,
}
_PER_TOOL = "limits.tools."
_CALL_BOUNDS = tuple(bound.name for bound in fields(CallLimits))
"""Those bounds that a single tool may have for itself."""

_LOOSENESS = (LocalTools.NEVER, LocalTools.AUTO, LocalTools.ALWAYS)


def variable_of(key: str) -> str:
    """The environment variable of a setting: `tools.local` is `PUNIE_TOOLS_LOCAL`."""
    return f"PUNIE_{key.upper().replace('.', '_')}"


def load_settings(environ: Mapping[str, str], flags: Mapping[str, str | None], cwd: str) -> Settings:
    """The settings for a session in `cwd`. `flags` are the command line's, by dotted key, None where not given."""
    found: dict[str, tuple[object, str]] = {}
    user = user_settings_file(environ)
    _take(found, read_settings(user), str(user))
    project = project_settings_file(cwd)
    _tighten(found, read_settings(project), str(project))
    for key in _KEYS:
        if environ.get(variable_of(key)):
            _take(found, {key: environ[variable_of(key)]}, variable_of(key))
    _take(found, {key: value for key, value in flags.items() if value is not None}, "the command line")
    return _settings(found)


def _parser(key: str, source: str) -> Callable[[object], object]:
    tool, bound = _tool_and_bound(key)
    parse = _KEYS.get(f"limits.{bound}" if tool else key)
    if parse is None or (tool and bound not in _CALL_BOUNDS):
        raise SettingsError(source, f"{key} is not a setting of this version")
    return parse


def _tool_and_bound(key: str) -> tuple[str, str]:
    """The tool and the bound of `limits.tools.NAME.BOUND`; no tool for any other key."""
    tool, _, bound = key.removeprefix(_PER_TOOL).rpartition(".") if key.startswith(_PER_TOOL) else ("", "", "")
    return tool, bound


def _take(found: dict[str, tuple[object, str]], values: Mapping[str, object], source: str) -> None:
    for key, value in values.items():
        try:
            found[key] = (_parser(key, source)(value), source)
        except ValueError as error:
            raise SettingsError(source, f"{key}: {error}") from error


def _tighten(found: dict[str, tuple[object, str]], values: Mapping[str, object], source: str) -> None:
    """Take from a project's file what makes the session stricter; the rest is left out, and said."""
    given: dict[str, tuple[object, str]] = {}
    _take(given, values, source)
    before = _settings(found)
    for key, (value, _) in given.items():
        if key == "tools.disabled":
            found[key] = ((*before.disabled_tools, *_names(value)), source)
        elif _is_stricter(key, value, before):
            found[key] = (value, source)
        else:
            _log.warning("%s: %s is left out: a project's settings may only tighten", source, key)


def _is_stricter(key: str, value: object, before: Settings) -> bool:
    if key == "tools.local":
        return _LOOSENESS.index(_local(value)) < _LOOSENESS.index(before.local_tools)
    now = _bound_of(key, before)
    return now is not None and _positive(value) < now


def _bound_of(key: str, settings: Settings) -> float | None:
    """The number in force for a key of bounds; None for a key that has none."""
    tool, bound = _tool_and_bound(key)
    limits = settings.limits.of(tool) if tool else settings.limits.general
    in_force: dict[str, float] = {f"limits.{name}": getattr(limits, name) for name in _CALL_BOUNDS}
    in_force["limits.concurrent_calls"] = settings.limits.concurrent_calls
    in_force["turn.max_requests"] = settings.turn_limits.max_requests
    return in_force.get(f"limits.{bound}" if tool else key)


def _settings(found: Mapping[str, tuple[object, str]]) -> Settings:
    values = {key: value for key, (value, _) in found.items()}
    bounds = {name: values[f"limits.{name}"] for name in _CALL_BOUNDS if f"limits.{name}" in values}
    general = CallLimits(**cast("dict[str, Any]", bounds))  # each was parsed as its key says
    by_tool: dict[str, dict[str, float]] = {}
    if "limits.output_bytes" in values:
        by_tool["read_file"] = {"output_bytes": general.output_bytes}  # said in so many words, it holds for files too
    for key, value in values.items():
        tool, bound = _tool_and_bound(key)
        if tool:
            by_tool.setdefault(tool, {})[bound] = _positive(value)
    model = values.get("model")
    return Settings(
        model=model if isinstance(model, str) else None,
        local_tools=_local(values.get("tools.local", LocalTools.AUTO)),
        disabled_tools=frozenset(_names(values.get("tools.disabled", ()))),
        limits=Limits(
            general,
            MappingProxyType(by_tool),
            _whole(values.get("limits.concurrent_calls", Limits().concurrent_calls)),
        ),
        turn_limits=TurnLimits(_whole(values.get("turn.max_requests", TurnLimits().max_requests))),
        origins=MappingProxyType({key: source for key, (_, source) in found.items()}),
    )
