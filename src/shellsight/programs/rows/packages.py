"""Package managers of Python and JavaScript."""

from __future__ import annotations

from shellsight.programs.packages import fetched, npm, pnpm, running, yarn
from shellsight.programs.row import Row
from shellsight.report import Effect
from shellsight.words.form import Operands
from shellsight.words.verbs import look, verbs

ROWS = (
    Row(
        "pip pip3",
        verbs(
            looking={
                "list": look(
                    flags=(
                        "l v q e --local --user --not-required --exclude-editable --include-editable --pre --editable "
                        "--verbose --quiet --disable-pip-version-check --no-index"
                    ),
                    values="--format --path --exclude",
                ),
                "show": look(flags="f v q --files --verbose"),
                "freeze": look(flags="l --local --user --all --exclude-editable", values="--path --exclude"),
                "check": look(),
                "inspect": look(flags="--local --user", values="--path"),
                "debug": look(flags="--verbose"),
                "help": look(),
            },
            far={
                "installs, removes or fetches packages": "install uninstall download wheel",
                "reaches the network": "index search",
                "shows or changes settings": "config",
                "changes the cache": "cache",
            },
            effects=(Effect.INSTALL, Effect.NETWORK),
            leading="--disable-pip-version-check --no-color --no-input --quiet -q",
        ),
        (
            "* config list => dangerous: install, network",
            "* --log ~/.bashrc list => unknown: writes /home/me/.bashrc",
            "* --version => safe",
        ),
        looks="cache dir, cache info, cache list",
    ),
    Row(
        "pip2",
        verbs(
            looking={
                "list": look(
                    flags=(
                        "l v q e --local --user --not-required --exclude-editable --include-editable --pre --editable "
                        "--verbose --quiet --disable-pip-version-check --no-index"
                    ),
                    values="--format --path --exclude",
                ),
                "show": look(flags="f v q --files --verbose"),
                "freeze": look(flags="l --local --user --all --exclude-editable", values="--path --exclude"),
                "check": look(),
                "inspect": look(flags="--local --user", values="--path"),
                "debug": look(flags="--verbose"),
                "help": look(),
            },
            far={
                "installs, removes or fetches packages": "install uninstall download wheel",
                "reaches the network": "index search",
                "shows or changes settings": "config",
                "changes the cache": "cache",
            },
            effects=(Effect.INSTALL, Effect.NETWORK),
            leading="--disable-pip-version-check --no-color --no-input --quiet -q",
        ),
        ("pip2 => unknown", "pip2 --version => safe"),
    ),
    Row(
        "uv",
        running(
            "run",
            verbs(
                looking={
                    "version": look(flags="--short", values="--output-format", operands=Operands.NONE),
                    "python": verbs(
                        looking={
                            "list": look(flags="--all-versions --only-installed --offline"),
                            "find": look(),
                            "dir": look(),
                        },
                        far={"installs interpreters": "install uninstall pin"},
                        effects=(Effect.INSTALL, Effect.NETWORK),
                    ),
                    "pip": verbs(
                        looking={
                            "list": look(
                                flags=(
                                    "l v q e --local --user --not-required "
                                    "--exclude-editable --include-editable --pre --editable "
                                    "--verbose --quiet --disable-pip-version-check --no-index"
                                ),
                                values="--format --path --exclude",
                            ),
                            "show": look(flags="f v q"),
                            "freeze": look(flags="l --user"),
                            "check": look(),
                            "tree": look(),
                        },
                        far={"installs or removes packages": "install uninstall sync compile"},
                        effects=(Effect.INSTALL, Effect.NETWORK),
                    ),
                    "cache": verbs(looking={"dir": look(), "size": look()}, far={"deletes the cache": "clean prune"}),
                },
                far={
                    "installs or removes packages": "add remove sync lock init",
                    "publishes": "publish",
                    "installs or runs programs": "tool x self",
                    "handles secrets": "auth",
                },
                building="build format tree",
                effects=(Effect.INSTALL, Effect.NETWORK),
            ),
            quiet="--frozen --locked --no-sync --offline -q --quiet --isolated --no-dev --active -v --verbose",
        ),
        (
            "uv --version => safe",
            "uv tree => ordinary",
            "uv pip list --outdated => unknown",
            "uv add evil => dangerous: install, network",
        ),
        looks="tool list, tool dir, help, help pip, help run, help sync, help add",
    ),
    Row(
        "poetry",
        running(
            "run",
            verbs(
                looking={
                    "show": look(flags="t T a --tree --all --top-level --no-dev", values="--with --without --only"),
                    "check": look(flags="--lock --strict"),
                    "env": verbs(
                        looking={"info": look(flags="p e --path --executable"), "list": look(flags="--full-path")},
                        far={"changes environments": "use remove"},
                    ),
                    "about": look(),
                    "version": look(flags="s --short", operands=Operands.NONE),
                },
                far={
                    "installs or removes packages": "add remove install update lock sync self new init",
                    "publishes": "publish",
                    "changes settings": "config source cache",
                },
                building="build",
                effects=(Effect.INSTALL, Effect.NETWORK),
            ),
            quiet="-q --quiet --no-ansi",
        ),
        (
            "poetry run -q pytest => ordinary",
            "poetry show --latest => unknown",
            "poetry add evil => dangerous: install, network",
            "poetry config virtualenvs.in-project => safe",
        ),
        looks="config virtualenvs.in-project, config virtualenvs.path, config virtualenvs.create, config cache-dir",
    ),
    Row(
        "pdm rye pixi",
        running(
            "run",
            verbs(
                far={
                    "installs, removes or publishes packages": (
                        "add remove install update lock sync self new init publish create shell"
                    )
                },
                building="build fmt lint test",
                effects=(Effect.INSTALL, Effect.NETWORK),
            ),
        ),
        ("* install => dangerous: install, network", "* --version => safe", "* a.txt => unknown"),
    ),
    Row(
        "hatch",
        running(
            "run",
            verbs(
                far={
                    "installs, removes or publishes packages": (
                        "add remove install update lock sync self new init publish create shell"
                    )
                },
                building="build fmt lint test",
                effects=(Effect.INSTALL, Effect.NETWORK),
            ),
        ),
        ("hatch => unknown", "hatch --version => safe"),
        tasks=True,
    ),
    Row(
        "pipenv",
        running(
            "run",
            verbs(
                far={
                    "installs, removes or publishes packages": (
                        "add remove install update lock sync self new init publish create shell"
                    )
                },
                building="build fmt lint test",
                effects=(Effect.INSTALL, Effect.NETWORK),
            ),
        ),
        ("pipenv => unknown", "pipenv --version => safe"),
        looks="--venv, --where",
    ),
    Row(
        "uvx",
        fetched,
        ("uvx --version => safe", "uvx evil => dangerous: install, network"),
        looks="--version, -V, --help",
    ),
    Row(
        "pipx",
        verbs(
            looking={"list": look(flags="--short --json"), "environment": look()},
            far={
                "installs or runs programs": (
                    "install uninstall run inject upgrade upgrade-all reinstall ensurepath uninstall-all runpip"
                )
            },
            effects=(Effect.INSTALL, Effect.NETWORK),
        ),
        ("pipx install evil => dangerous: install, network", "pipx => unknown"),
    ),
    Row(
        "npx",
        fetched,
        (
            "npx --version => safe",
            "npx --no-install eslint src => ordinary: looks at src",
            "npx evil => dangerous: install, network",
            "npx -c 'rm -rf /' => forbidden: deletes /**, writes /, runs code",
        ),
        looks="--version, -v, --help",
    ),
    Row("pnpx bunx", fetched, ("* evil => dangerous: install, network",)),
    Row(
        "npm",
        npm,
        (
            "npm --version => safe",
            "npm run build => ordinary: looks at build",
            "npm explore x -- rm -rf y => unknown",
            "npm install => dangerous: install, network",
        ),
        looks=(
            "run, run-script, config get registry, config get prefix, config get cache, config get userconfig, "
            "pkg get, pkg get name, pkg get version, pkg get scripts, pkg get dependencies, pkg get engines, pkg "
            "get devDependencies, -g ls, -g ls --depth=0, -g list, -g list --depth=0"
        ),
        tasks=True,
    ),
    Row("pnpm", pnpm, ("pnpm list => ordinary", "pnpm dlx evil => dangerous: install, network"), tasks=True),
    Row("bun", npm, ("bun -e 'process.exit()' => dangerous: runs code", "bun => unknown"), tasks=True),
    Row("yarn", yarn, ("yarn test => ordinary", "yarn add evil => dangerous: install, network"), tasks=True),
    Row(
        "bundle bundler",
        running(
            "exec",
            verbs(
                building="check info list platform show",
                far={
                    "installs or removes packages": (
                        "install update add remove clean config lock cache package init outdated"
                    )
                },
                effects=(Effect.INSTALL, Effect.NETWORK),
            ),
        ),
        ("* list => ordinary", "* exec => unknown", "* exec rm -rf / => forbidden: deletes /**, writes /"),
    ),
)
