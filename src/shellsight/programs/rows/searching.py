"""Programs that search for files and lines."""

from __future__ import annotations

from shellsight.programs.row import Row
from shellsight.programs.searching import ack, ag, fd, find, grep, rg
from shellsight.words.call import always, unknown

ROWS = (
    Row(
        "grep egrep fgrep ggrep",
        grep,
        (
            "* . .env => dangerous: reads .env, secrets",
            "* -r '' . => unknown: reads ./**",
            "* .e* => unknown: reads ./**",
            '* -rn "def main" src => safe: reads src/**',
        ),
        plain=True,
    ),
    Row(
        "rg",
        rg,
        (
            "rg TODO => safe: reads ./**",
            "rg -uu . => unknown: reads ./**",
            'rg "" .env => dangerous: reads .env/**, reads .env, secrets',
        ),
        plain=True,
    ),
    Row(
        "ag",
        ag,
        (
            "ag --python 'def main' => safe: reads ./**",
            "ag --hidden password => unknown: reads ./**",
            'ag --pager "sh -c \\"rm -rf x\\"" TODO => unknown: reads TODO/**',
        ),
        plain=True,
    ),
    Row("ack", ack, ("ack -w foo src => safe: reads src/**", "ack --pager=./evil.sh TODO => unknown: reads ./**")),
    Row(
        "find gfind",
        find,
        (
            "* . -del\\ete => dangerous: looks at ./**, deletes ./**",
            "* . $'-delete' => unknown: looks at ./**, looks at $'-delete'/**",
            "* . -name '*.py' => safe: looks at ./**",
        ),
        plain=True,
    ),
    Row(
        "fd fdfind",
        fd,
        (
            "* -e py -x rm => dangerous: looks at ./**, deletes (what xargs is fed)/**",
            "* -Hx rm => unknown: reads ., looks at ./**",
            "* -e toml => safe: reads ., looks at ./**",
        ),
        plain=True,
    ),
    Row(
        "locate",
        always(unknown("looks through the whole machine")),
        ("locate -d ~/.ssh/db x => unknown: writes /home/me/.ssh/db",),
    ),
)
