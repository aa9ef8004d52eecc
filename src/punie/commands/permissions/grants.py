"""`punie permissions list`, `revoke` and `audit`: what was granted for good, and what was decided."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from datetime import UTC, datetime

import anyio
from attrs import define, field

from punie.adapters.console.pipe import Pipe
from punie.adapters.storage.audit import SqliteAuditTrail
from punie.adapters.storage.grants import SqliteGrantStore
from punie.adapters.storage.state_file import StateFile
from punie.bootstrap.logs import start_logging
from punie.bootstrap.settings.state import database_file
from punie.commands.permissions.shown import audit_json, audit_text, grants_json, grants_text, report_json, report_text
from punie.domain.permission.grants import StoredGrant
from punie.domain.values.display import one_line

EXIT_FAILED = 1
MOST_ROWS = 1_000_000


@define
class GrantsMode:
    """One run of one of the three; each method gives the exit code. A file that cannot be read is said in the log."""

    state: StateFile
    as_json: bool
    out: Pipe = field(factory=lambda: Pipe(sys.stdout))

    async def list(self) -> int:
        """Print the grants that hold."""
        grants = await self._active()
        if self.state.hindered:
            return EXIT_FAILED
        self.out.write(grants_json(grants) + "\n" if self.as_json else grants_text(grants))
        return 0

    async def revoke(self, prefix: str) -> int:
        """Forget the one grant whose id is that, or begins so; what has expired goes as well."""
        store = SqliteGrantStore(self.state)
        ids = [grant.id for grant in await self._active()]
        found = [name for name in ids if name == prefix] or [name for name in ids if prefix and name.startswith(prefix)]
        if self.state.hindered:
            return EXIT_FAILED
        if len(found) != 1:
            shown = one_line(prefix, 40)
            what = f"{len(found)} grants begin with {shown}" if found else f"there is no grant {shown}"
            sys.stderr.write(f"punie: {what}. Nothing was revoked; `punie permissions list` shows the ids.\n")
            return EXIT_FAILED
        if not await store.revoke(found[0]):
            sys.stderr.write(f"punie: {found[0]} could not be revoked, or was already. Try again.\n")
            return EXIT_FAILED
        await store.purge(_now())
        said = f"{found[0]} is revoked, also for sessions that are running.\n"
        self.out.write(json.dumps({"revoked": found[0]}) + "\n" if self.as_json else said)
        return 0

    async def audit(self, *, verify: bool, limit: int) -> int:
        """Print the last decisions, or look through all of them."""
        trail = SqliteAuditTrail(self.state)
        if verify:
            report = await trail.verify()
            if self.state.hindered:
                return EXIT_FAILED
            self.out.write(report_json(report) + "\n" if self.as_json else report_text(report))
            return 0 if report.fault is None else EXIT_FAILED
        rows = await trail.latest(min(max(0, limit), MOST_ROWS))
        if self.state.hindered:
            return EXIT_FAILED
        self.out.write(audit_json(rows) + "\n" if self.as_json else audit_text(rows))
        return 0

    async def _active(self) -> tuple[StoredGrant, ...]:
        return tuple(await SqliteGrantStore(self.state).active(_now()))


def _now() -> float:
    return datetime.now(UTC).timestamp()


def run_grants(*, action: str, as_json: bool = False, grant_id: str = "", verify: bool = False, limit: int = 0) -> int:
    """Run `list`, `revoke` or `audit`; gives the exit code."""
    environ: Mapping[str, str] = {"PUNIE_LOG_LEVEL": "WARNING", **os.environ}
    mode = GrantsMode(StateFile(database_file(environ), start_logging(environ, None)), as_json)

    async def run() -> int:
        if action == "list":
            return await mode.list()
        if action == "revoke":
            return await mode.revoke(grant_id)
        return await mode.audit(verify=verify, limit=limit)

    return anyio.run(run)
