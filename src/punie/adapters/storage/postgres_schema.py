"""The tables of sessions in PostgreSQL, and their migrations; several processes may start at once."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

from punie.adapters.storage.sql import Sql, oldest_user, too_new
from punie.domain.errors import SessionStoreError

SCHEMA = "punie"
"""A schema of its own: other programs may have a table `sessions` in the same database."""

STARTING = 7_205_759_403_792_793
"""The advisory lock that a process holds while it makes or changes tables."""

_FIRST_INDEX = """
    CREATE TABLE IF NOT EXISTS punie.sessions (
        id text COLLATE "C" PRIMARY KEY, cwd text COLLATE "C" NOT NULL, additional_directories text NOT NULL,
        title text, updated_at double precision NOT NULL, turns bigint NOT NULL, mode text,
        last_sequence bigint NOT NULL
    );
    CREATE INDEX IF NOT EXISTS sessions_by_change ON punie.sessions (updated_at DESC, id);
    """
"""Part of a version."""

_WITH_OWNER = """
    ALTER TABLE punie.sessions ADD COLUMN IF NOT EXISTS owner text COLLATE "C" NOT NULL DEFAULT '';
    """

INDEX = f"{_FIRST_INDEX}{_WITH_OWNER}"
"""The one table that is made again where it is lost, because all in it comes from the logs. Part of a version."""

MIGRATIONS: tuple[str, ...] = (
    _FIRST_INDEX
    + """
    CREATE TABLE punie.session_events (
        session_id text COLLATE "C" NOT NULL, sequence bigint NOT NULL, at double precision NOT NULL,
        kind text COLLATE "C" NOT NULL, body text NOT NULL,
        PRIMARY KEY (session_id, sequence)
    );
    CREATE INDEX session_prompts ON punie.session_events (session_id, sequence) WHERE kind = 'prompt_accepted';
    CREATE TABLE punie.session_snapshots (
        session_id text COLLATE "C" PRIMARY KEY, engine text NOT NULL, sequence bigint NOT NULL, state bytea NOT NULL
    );
    CREATE TABLE punie.session_leases (
        session_id text COLLATE "C" PRIMARY KEY, token bigint GENERATED ALWAYS AS IDENTITY,
        machine text NOT NULL, pid bigint NOT NULL, started text NOT NULL, renewed_at double precision NOT NULL
    );
    """,
    INDEX
    + """
    CREATE TABLE punie.calls (
        session_id text COLLATE "C" NOT NULL, turn_id text NOT NULL, correlation_id text COLLATE "C" NOT NULL,
        tool text NOT NULL, source text NOT NULL, outcome text NOT NULL, code text,
        started_at double precision NOT NULL, elapsed_ms double precision NOT NULL, waited_ms double precision NOT NULL,
        bytes_in bigint NOT NULL, bytes_out bigint NOT NULL, place bigint GENERATED ALWAYS AS IDENTITY,
        PRIMARY KEY (session_id, correlation_id)
    );
    CREATE INDEX calls_by_start ON punie.calls (started_at, place);
    CREATE TABLE punie.turns (
        session_id text COLLATE "C" NOT NULL, turn_id text COLLATE "C" NOT NULL, model text NOT NULL,
        stop_reason text NOT NULL, started_at double precision NOT NULL, elapsed_ms double precision NOT NULL,
        input_tokens bigint NOT NULL, output_tokens bigint NOT NULL, cached_read_tokens bigint NOT NULL,
        cached_write_tokens bigint NOT NULL, requests bigint NOT NULL, cost_usd double precision,
        broke text NOT NULL, person text COLLATE "C" NOT NULL, project text NOT NULL,
        place bigint GENERATED ALWAYS AS IDENTITY,
        PRIMARY KEY (session_id, turn_id)
    );
    CREATE INDEX turns_by_start ON punie.turns (started_at, place);
    CREATE TABLE punie.grants (
        id text COLLATE "C" NOT NULL, tool text NOT NULL, scope text NOT NULL, key text NOT NULL,
        directory text NOT NULL, created_at double precision NOT NULL, expires_at double precision NOT NULL,
        person text COLLATE "C" NOT NULL, machine text COLLATE "C" NOT NULL,
        PRIMARY KEY (id, machine)
    );
    CREATE TABLE punie.audit (
        writer text COLLATE "C" NOT NULL, number bigint NOT NULL, previous text NOT NULL, hash text NOT NULL,
        text text NOT NULL, place bigint GENERATED ALWAYS AS IDENTITY,
        PRIMARY KEY (writer, number)
    );
    CREATE UNIQUE INDEX audit_by_place ON punie.audit (place);
    CREATE TABLE punie.audit_pruned (
        writer text COLLATE "C" NOT NULL, number bigint NOT NULL, hash text NOT NULL, at bigint,
        PRIMARY KEY (writer, number)
    );
    CREATE TABLE punie.audit_seal (
        writer text COLLATE "C" PRIMARY KEY, count bigint NOT NULL, key text NOT NULL, last bigint NOT NULL DEFAULT 0,
        head text NOT NULL DEFAULT '', changed double precision NOT NULL DEFAULT 0
    );
    """,
)
"""The changes of each version to the one before; a version that was released is never changed again."""


def checksum(script: str) -> str:
    """A digest by which a version that was changed after it had been applied is noticed; layout does not count."""
    return hashlib.sha256(" ".join(script.split()).encode()).hexdigest()


def is_ready(database: Sql, migrations: Sequence[str] = MIGRATIONS) -> bool:
    """Whether the tables are those of this version, or of a newer one that lets this one use them.

    Raises `SessionStoreError` where they are of a newer one that does not, or of somebody else.
    """
    ((versions, index),) = database.run(
        "SELECT to_regclass('punie.schema_versions') IS NOT NULL, to_regclass('punie.sessions') IS NOT NULL"
    )
    applied = _applied(database, migrations) if versions else 0
    return index and applied == len(migrations)


def make_ready(database: Sql, migrations: Sequence[str] = MIGRATIONS) -> None:
    """Make or change the tables, in the transaction of the connection; other processes that start wait meanwhile."""
    database.run("SELECT pg_advisory_xact_lock(?)", (STARTING,))
    if is_ready(database, migrations):
        return  # another process was faster
    ((there,),) = database.run("SELECT to_regnamespace('punie') IS NOT NULL")
    if not there:  # a user without the right to create it would be refused even where it exists
        database.run("CREATE SCHEMA punie")
    database.run(
        "CREATE TABLE IF NOT EXISTS punie.schema_versions "
        "(version bigint PRIMARY KEY, checksum text NOT NULL, applied_at timestamptz NOT NULL DEFAULT now())"
    )
    database.run("ALTER TABLE punie.schema_versions ADD COLUMN IF NOT EXISTS oldest bigint")
    for number, script in enumerate(migrations[_applied(database, migrations) :], _applied(database, migrations) + 1):
        database.run(script)
        values = (number, checksum(script), oldest_user(migrations[:number]))
        database.run("INSERT INTO punie.schema_versions (version, checksum, oldest) VALUES (?, ?, ?)", values)
    database.run(INDEX)


def _applied(database: Sql, migrations: Sequence[str]) -> int:
    """The number of versions applied that this process knows, each of them as it knows it."""
    found = database.run("SELECT version, checksum FROM punie.schema_versions ORDER BY version")
    if len(found) > len(migrations):
        # Tables from before the column was there are read too.
        query = "SELECT (to_jsonb(v) ->> 'oldest')::bigint FROM punie.schema_versions v ORDER BY version DESC LIMIT 1"
        ((oldest,),) = database.run(query)
        if (problem := too_new(len(found), oldest, len(migrations))) is not None:
            raise SessionStoreError(problem, "Bring this server to the version of the others")
    for (version, had), script in zip(found, migrations, strict=False):
        if had != checksum(script):
            raise SessionStoreError(
                f"its tables are not those of this version of Punie (version {version} has another checksum)",
                "Give Punie a database of its own, or the one that it made",
            )
    return min(len(found), len(migrations))
