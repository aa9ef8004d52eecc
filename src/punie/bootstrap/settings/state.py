"""Where what Punie remembers lives (INTERFACES.md section 4)."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from punie.bootstrap.settings.files import APP

DATABASE_NAME = "punie.db"


def state_dir(environ: Mapping[str, str]) -> Path:
    """`PUNIE_STATE_DIR`, else `state` below `PUNIE_HOME`, else the user's state directory."""
    if environ.get("PUNIE_STATE_DIR"):
        return Path(environ["PUNIE_STATE_DIR"])
    if environ.get("PUNIE_HOME"):
        return Path(environ["PUNIE_HOME"]) / "state"
    import platformdirs

    return platformdirs.user_state_path(APP)


def database_file(environ: Mapping[str, str]) -> Path:
    """The one SQLite file of the state; whoever writes it makes it."""
    return state_dir(environ) / DATABASE_NAME
