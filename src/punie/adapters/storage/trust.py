"""Trusted settings files of projects, in the user's database."""

from __future__ import annotations

from collections.abc import Callable

from attrs import frozen

from punie.adapters.storage.database import Database, UnusableDatabaseError
from punie.adapters.storage.state_file import StateFile, for_good
from punie.ports.permission import TrustStore


@frozen
class SqliteTrustStore(TrustStore):
    """Reads the file at every question, so that what another process revoked is gone at once."""

    state: StateFile

    def trusts(self, path: str, digest: str) -> bool:
        def work(database: Database) -> bool:
            query = "SELECT 1 FROM trusted_files WHERE path = ? AND digest = ?"
            return bool(database.run(query, (path, digest)))

        return self.state.path.exists() and self._done(work)

    def trust(self, path: str, digest: str, at: float) -> bool:
        def work(database: Database) -> bool:
            with for_good(database):
                database.run("INSERT OR REPLACE INTO trusted_files VALUES (?, ?, ?)", (path, digest, at))
            return True

        return self._done(work)

    def revoke(self, path: str) -> bool:
        def work(database: Database) -> bool:
            with for_good(database):
                return bool(database.run("DELETE FROM trusted_files WHERE path = ? RETURNING path", (path,)))

        return self.state.path.exists() and self._done(work)

    def _done(self, work: Callable[[Database], bool]) -> bool:
        try:
            return self.state.run_here(work)
        except UnusableDatabaseError:
            return False
