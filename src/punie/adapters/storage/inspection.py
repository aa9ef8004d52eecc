"""A look at the database that changes nothing in it: whether it is whole, and which version wrote it."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

from punie.adapters.storage.database import MIGRATIONS, Database, UnusableDatabaseError, schema_version

_MOST_NAMED = 3


@frozen
class DatabaseReport:
    """`version` is that of its tables (0: none yet), `known` the newest that this Punie knows."""

    version: int
    known: int
    problem: str | None = None


def inspect_database(path: Path) -> DatabaseReport:
    """SQLite's own quick check of the file, which is there; what is wrong is told and not raised."""
    known = len(MIGRATIONS)
    try:
        database = Database.connect(path)
    except UnusableDatabaseError as error:
        return DatabaseReport(0, known, str(error))
    try:
        said = [str(row[0]) for row in database.run(f"PRAGMA quick_check({_MOST_NAMED})")]
        if said != ["ok"]:
            return DatabaseReport(0, known, f"it is damaged ({'; '.join(said)})")
        return DatabaseReport(schema_version(database), known)
    except UnusableDatabaseError as error:
        return DatabaseReport(0, known, str(error))
    finally:
        database.close()
