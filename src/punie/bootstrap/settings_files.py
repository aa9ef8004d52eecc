"""Where settings, state and logs live (INTERFACES.md section 4), and how a settings file is read."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import cast

from punie.domain.errors import SettingsError

APP = "punie"
MAX_FILE_BYTES = 1_048_576


def user_settings_file(environ: Mapping[str, str]) -> Path:
    """`PUNIE_CONFIG`, else `config.toml` below `PUNIE_HOME`, else in the user's config directory."""
    if environ.get("PUNIE_CONFIG"):
        return Path(environ["PUNIE_CONFIG"])
    if environ.get("PUNIE_HOME"):
        return Path(environ["PUNIE_HOME"]) / "config.toml"
    import platformdirs

    return platformdirs.user_config_path(APP) / "config.toml"


def project_settings_file(cwd: str) -> Path:
    """`.punie/config.toml` in the project."""
    return Path(cwd) / ".punie" / "config.toml"


def read_settings(path: Path) -> Mapping[str, object]:
    """The file's settings by dotted key; empty where there is no such file.

    Raises `SettingsError` for anything else that keeps it from being read: the door stays closed.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except FileNotFoundError:
        return {}
    except NotADirectoryError:
        return {}
    except OSError as error:
        raise SettingsError(str(path), error.strerror or "it cannot be read") from error
    if len(data) > MAX_FILE_BYTES:
        raise SettingsError(str(path), f"it is larger than {MAX_FILE_BYTES} bytes")
    try:
        return dict(_flat(tomllib.loads(data.decode("utf-8"))))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise SettingsError(str(path), f"it is not valid TOML ({error})") from error


def _flat(table: Mapping[str, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flat(cast("Mapping[str, object]", value), f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
