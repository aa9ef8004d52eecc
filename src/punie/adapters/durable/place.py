"""The database of a book of turns, and what leaves it in time."""

from __future__ import annotations

import os
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Final

from attrs import frozen
from dbos import DBOS, DBOSConfig
from sqlalchemy import create_engine

from punie.adapters.durable.orders import ENDED

SCHEMA: Final = "punie_turns"
OWNER_ONLY: Final = 0o600
KEPT_DAYS: Final = 30
"""How long the book lists a turn after its end; the log of its session says more, and stays."""

TIDY_AT_ONCE: Final = 1_000


@frozen
class Place:
    """The database of a book: a PostgreSQL URL as libpq reads it, or a file of this machine."""

    url: str | None
    file: Path

    def config(self) -> DBOSConfig:
        """The part of DBOS's configuration that says so."""
        if self.url is None:
            self.file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            os.close(os.open(self.file, os.O_CREAT | os.O_RDWR, OWNER_ONLY))
            return {"name": "punie", "system_database_url": f"sqlite:///{self.file}"}
        import psycopg

        connect = partial(psycopg.connect, self.url, connect_timeout=5)
        engine = create_engine("postgresql+psycopg://", creator=connect, pool_size=4, pool_pre_ping=True)
        return {"name": "punie", "system_database_engine": engine, "dbos_system_schema": SCHEMA}


def forget_the_old() -> None:
    """Delete turns that ended long before the latest one began, and their steps; the rest of them next time.

    Both times are the database's: the clock of one machine that is ahead must not delete the turns of the others.
    """
    bare = partial(DBOS.list_workflows, load_input=False, load_output=False)
    for latest in bare(limit=1, sort_desc=True):
        before = datetime.fromtimestamp((latest.created_at or 0) / 1000, UTC) - timedelta(days=KEPT_DAYS)
        if old := bare(status=list(ENDED), completed_before=before.isoformat(), limit=TIDY_AT_ONCE):
            DBOS.delete_workflows([each.workflow_id for each in old])
