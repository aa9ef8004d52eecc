"""The settings of one session: the user's file, the project's, `PUNIE_*`, flags, in rising strength.

The project's file may only tighten until it can be trusted, which a later version brings: what would loosen is left out
with a warning. Anything that cannot be understood raises `SettingsError`: no session starts on half-read settings.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import cast

from attrs import field, frozen

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
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ValueError("expected a number above zero")
    return number


_KEYS: Mapping[str, Callable[[object], object]] = {
    "model": _text,
    "tools.local": _local,
    "tools.disabled": _names,
    "limits.time_s": _positive,
    "limits.output_bytes": _positive,
    "turn.max_requests": _positive,
}
_PER_TOOL = "limits.tools."
_TIGHTEN_BY_LESS = ("limits.", "turn.")


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
    parse = _KEYS.get(key)
    if parse is None and key.startswith(_PER_TOOL) and key.endswith((".time_s", ".output_bytes")):
        parse = _positive
    if parse is None:
        raise SettingsError(source, f"{key} is not a setting of this version")
    return parse


def _take(found: dict[str, tuple[object, str]], values: Mapping[str, object], source: str) -> None:
    for key, value in values.items():
        try:
            found[key] = (_parser(key, source)(value), source)
        except ValueError as error:
            raise SettingsError(source, f"{key}: {error}") from error


def _tighten(found: dict[str, tuple[object, str]], values: Mapping[str, object], source: str) -> None:
    """Take from a project's file what makes the session stricter; the rest is left out, and said."""
    stricter: dict[str, tuple[object, str]] = {}
    _take(stricter, values, source)
    for key, (value, _) in stricter.items():
        if key == "tools.disabled":
            before = found.get(key, ((), ""))[0]
            found[key] = ((*_names(before), *_names(value)), source)
        elif (key == "tools.local" and value is LocalTools.NEVER) or _is_less(key, value, found):
            found[key] = (value, source)
        else:
            _log.warning("%s: %s is left out: a project's settings may only tighten", source, key)


def _is_less(key: str, value: object, found: Mapping[str, tuple[object, str]]) -> bool:
    if not key.startswith(_TIGHTEN_BY_LESS):
        return False
    general = key if not key.startswith(_PER_TOOL) else f"limits.{key.rpartition('.')[2]}"
    now = found.get(key) or found.get(general)
    bound = _positive(now[0]) if now is not None else _DEFAULTS[general]
    return _positive(value) < bound


_DEFAULTS: Mapping[str, float] = {
    "limits.time_s": CallLimits().time_s,
    "limits.output_bytes": CallLimits().output_bytes,
    "turn.max_requests": TurnLimits().max_requests,
}


def _settings(found: Mapping[str, tuple[object, str]]) -> Settings:
    values = {key: value for key, (value, _) in found.items()}
    general = CallLimits(
        _positive(values.get("limits.time_s", _DEFAULTS["limits.time_s"])),
        int(_positive(values.get("limits.output_bytes", _DEFAULTS["limits.output_bytes"]))),
    )
    by_tool: dict[str, dict[str, float]] = {}
    for key, value in values.items():
        if key.startswith(_PER_TOOL):
            tool, _, bound = key.removeprefix(_PER_TOOL).rpartition(".")
            by_tool.setdefault(tool, {})[bound] = _positive(value)
    model = values.get("model")
    return Settings(
        model=model if isinstance(model, str) else None,
        local_tools=_local(values.get("tools.local", LocalTools.AUTO)),
        disabled_tools=frozenset(_names(values.get("tools.disabled", ()))),
        limits=Limits(general, MappingProxyType(by_tool)),
        turn_limits=TurnLimits(int(_positive(values.get("turn.max_requests", TurnLimits().max_requests)))),
        origins=MappingProxyType({key: source for key, (_, source) in found.items()}),
    )
