"""Changes to the user's settings file; everything else in the file stays as the user wrote it."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping, MutableMapping
from pathlib import Path
from typing import Any, cast

from punie.bootstrap.settings.files import read_settings_file
from punie.domain.errors import SettingsError
from punie.mechanics.files import write_at_once

NEW_FILE_MODE = 0o600


def disable_tools(path: Path, names: Iterable[str]) -> bool:
    """Add tools to `disabled` in `[tools]`; returns whether the file changed.

    The file is replaced at once or not at all, and its former content is kept beside it as `config.toml.bak`.
    Raises `SettingsError` for a file that cannot be understood or written, which then stays as it is.
    """
    return _changed(path, lambda before: _with_disabled(before, list(names), str(path)))


def set_model(path: Path, model: str) -> bool:
    """Set `model`; returns and raises as `disable_tools` does."""
    return _changed(path, lambda before: _with_model(before, model, str(path)))


def _changed(path: Path, change: Callable[[str], str]) -> bool:
    read_settings_file(path)
    try:
        before = path.read_bytes().decode("utf-8") if path.exists() else ""
        after = change(before)
        if after == before:
            return False
        replace_file(path, before, after)
    except OSError as error:
        raise SettingsError(str(path), error.strerror or "it cannot be written") from error
    return True


def _with_model(text: str, model: str, source: str) -> str:
    import tomlkit

    document = cast("MutableMapping[str, Any]", tomlkit.parse(text))
    if document.get("model") == model:
        return text
    document["model"] = model
    after = tomlkit.dumps(document)
    _check(after, {**tomllib.loads(text), "model": model}, source)
    return after


def _with_disabled(text: str, names: list[str], source: str) -> str:
    import tomlkit

    document = cast("MutableMapping[str, Any]", tomlkit.parse(text))
    if "tools" not in document:
        document["tools"] = tomlkit.table()
    tools = document["tools"]
    if not isinstance(tools, MutableMapping):
        raise SettingsError(source, "tools: expected a table")
    table = cast("MutableMapping[str, Any]", tools)
    disabled = _listed(table.get("disabled", []), source)
    missing = [name for name in dict.fromkeys(names) if name not in disabled]
    if not missing:
        return text
    if isinstance(table.get("disabled"), list):
        table["disabled"].extend(missing)
    else:
        table["disabled"] = [*disabled, *missing]
    after = tomlkit.dumps(document)
    expected: dict[str, Any] = tomllib.loads(text)
    expected["tools"] = {**cast("Mapping[str, Any]", expected.get("tools", {})), "disabled": [*disabled, *missing]}
    _check(after, expected, source)
    return after


def _listed(value: object, source: str) -> list[str]:
    words = value.split(",") if isinstance(value, str) else value
    if not isinstance(words, list) or not all(isinstance(word, str) for word in cast("list[object]", words)):
        raise SettingsError(source, "tools.disabled: expected a list of tool names")
    return [str(word).strip() for word in cast("list[str]", words)]


def _check(after: str, expected: Mapping[str, Any], source: str) -> None:
    """Raise `SettingsError` unless the new text reads as expected."""
    try:
        understood = tomllib.loads(after) == expected
    except tomllib.TOMLDecodeError:
        understood = False
    if not understood:
        raise SettingsError(source, "it cannot be changed without touching the rest; add the setting by hand")


def replace_file(path: Path, before: str, after: str, backup: Path | None = None) -> None:
    """Replace the file's text at once or not at all; the former text is kept as `backup`, else with `.bak` appended.

    A new file is readable by the user only, an existing one keeps its mode. Raises `OSError`.
    """
    target = path.resolve()  # a link to a file that is kept elsewhere stays a link
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = NEW_FILE_MODE
    if target.exists():
        mode = target.stat().st_mode & 0o7777
        write_at_once(backup or target.with_name(f"{target.name}.bak"), before, mode)
    write_at_once(target, after, mode)
