"""Linters and formatters that only look with the right options."""

from __future__ import annotations

from shellsight.programs.building import CACHING, checker, checks, reader, ruff, shfmt
from shellsight.programs.row import Row
from shellsight.words.form import Operands, form

ROWS = (
    Row(
        "shellcheck",
        form(
            flags="aCxn -a -x --check-sourced --external-sources",
            values="sfSePo --shell --format --severity --exclude --include --wiki-link-count --color",
            operands=Operands.COUNT,
        ),
        ("shellcheck => safe", "shellcheck --version => unknown"),
    ),
    Row(
        "actionlint",
        reader(
            form(
                flags="-no-color -oneline -verbose -color",
                operands=Operands.COUNT,
                single=True,
                walks=True,
                reason="checks, changes nothing",
            )
        ),
        ("actionlint => safe: reads .", "actionlint -shellcheck ./x => ordinary: looks at x"),
    ),
    Row(
        "yamllint",
        checks("s --strict --no-warnings --list-files", "df --config-data --format", "-c --config-file"),
        ("yamllint -d relaxed . => safe: reads .", "yamllint -l a.txt => ordinary: looks at a.txt"),
    ),
    Row(
        "shfmt",
        shfmt,
        ("shfmt -d scripts/run.sh => safe: reads scripts/run.sh", "shfmt -w a.sh => ordinary: looks at a.sh"),
    ),
    Row(
        "tsc",
        checker(
            "--noEmit",
            "--pretty --skipLibCheck --strict --listFiles --showConfig",
            "-p --project --target --module",
            reason=CACHING,
        ),
        ("tsc --noEmit => safe: reads .", "tsc => ordinary", "tsc --noEmit false => ordinary: looks at false"),
    ),
    Row(
        "hadolint",
        checks("v --verbose --no-fail --no-color", "f --format --ignore -t --failure-threshold", "-c --config"),
        ("hadolint Dockerfile => safe: reads Dockerfile", "hadolint -l a.txt => ordinary: looks at a.txt"),
    ),
    Row(
        "pycodestyle",
        checks(
            "qvr --quiet --verbose --first --statistics --count --show-source --show-pep8 --diff",
            "--max-line-length --max-doc-length --select --ignore --exclude --filename --format",
            "--config",
        ),
        (
            "pycodestyle --max-line-length=100 src => safe: reads src",
            "pycodestyle -l a.txt => ordinary: looks at a.txt",
        ),
    ),
    Row(
        "gofmt", checker("-l -d", "-s -e"), ("gofmt -l . => safe: reads .", "gofmt -w a.go => ordinary: looks at a.go")
    ),
    Row(
        "vulture",
        checks(
            "v --verbose --sort-by-size --make-whitelist",
            "--min-confidence --exclude --ignore-names --ignore-decorators",
            "--config",
        ),
        ("vulture src --min-confidence 80 => safe: reads src", "vulture -l a.txt => ordinary: looks at a.txt"),
    ),
    Row("pyflakes", checks(""), ("pyflakes src => safe: reads src", "pyflakes -l a.txt => ordinary: looks at a.txt")),
    Row(
        "typos",
        checks("qv --diff --hidden --no-ignore --files --locale=en", "--format --type --exclude --color"),
        ("typos => safe: reads .", "typos --dump-config x => ordinary: looks at x"),
    ),
    Row(
        "pydocstyle",
        checks(
            "evsdc --explain --source --count --verbose --debug", "--convention --select --ignore --match --match-dir"
        ),
        ("pydocstyle => safe: reads .", "pydocstyle -l a.txt => ordinary: looks at a.txt"),
    ),
    Row(
        "ruff",
        ruff,
        (
            "ruff check => safe: reads .",
            "ruff check --config fix=true => ordinary: looks at check, looks at fix=true, writes fix=true/**",
            "ruff check --fix ~/other => ordinary: looks at check, writes /home/me/other, writes /home/me/other/**",
            "ruff check --cache-dir /home/me/x src => unknown: reads /home/me/x, reads src, writes /home/me/x",
            "ruff format /etc => dangerous: looks at format, writes /etc, writes /etc/**, system",
        ),
    ),
    Row(
        "black",
        checker(
            "--check --diff",
            (
                "qvl S C -q -v --quiet --verbose --color --no-color --preview --fast --safe "
                "--skip-string-normalization --skip-magic-trailing-comma"
            ),
            ("lt --line-length --target-version --include --exclude --extend-exclude --force-exclude --workers"),
            "--config",
        ),
        ("black --check src => safe: reads src", "black src => ordinary: looks at src"),
    ),
    Row(
        "isort",
        checker(
            "--check --check-only --diff -c --df",
            "qv --quiet --verbose --profile=black --color",
            "--profile --line-length -l --settings-path",
        ),
        ("isort --check src => safe: reads src", "isort . => ordinary: looks at ."),
    ),
)
