"""Editors, pagers and clients of databases."""

from __future__ import annotations

from shellsight.programs.row import Row
from shellsight.programs.viewing import bat, database, editor, info_page, manual, pager

ROWS = (
    Row(
        "zless less more most",
        pager,
        (
            '* "+!rm -rf x" README.md => dangerous: runs code',
            "* README.md => safe: reads README.md",
            "* --foo => unknown",
        ),
    ),
    Row(
        "bat",
        bat,
        ("bat --version => safe", 'bat --pager "rm -rf x" README.md => unknown'),
        looks="-V, --help, --version",
    ),
    Row("batcat", bat, ("batcat => safe",), looks="--version"),
    Row(
        "vim vi nvim emacs nano pico view gvim vimdiff rvim kak hx micro joe mcedit subl atom gedit",
        editor,
        (
            '* -c ":!rm -rf x" -c q README.md => dangerous: runs code',
            "* --version => safe",
            "* a.txt => unknown: writes a.txt",
        ),
    ),
    Row(
        "code",
        editor,
        ("code --version => safe", "code --install-extension evil.evil => unknown: writes evil.evil"),
        looks="-v, --list-extensions, --list-extensions --show-versions",
    ),
    Row(
        (
            "psql mysql mariadb sqlite3 sqlite mongo mongosh redis-cli cqlsh clickhouse-client duckdb sqlcmd "
            "influx neo4j cypher-shell usql pgcli mycli dropdb createdb pg_dump pg_restore mysqldump mysqladmin "
            "mongodump mongorestore pg_ctl initdb"
        ),
        database,
        ("* -c 'drop table users' => dangerous: runs code", "* --version => safe"),
    ),
    Row("man", manual, ("man 5 crontab => safe", "man 1 ../a.1 => unknown: writes /a.1"), asks=r"-[kfw]|[1-8]"),
    Row("info", info_page, ("info => safe", "info --output=/home/me/.bashrc ls => unknown: writes /home/me/.bashrc")),
)
