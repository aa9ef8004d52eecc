"""What a developer's day is made of: builds, tests, linters, formatters."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import evolve

from shellsight.report import Effect, PathEffect, Standing
from shellsight.words.arguments import names, prefixes
from shellsight.words.call import Call, Inner, Judge, Outcome, always, dangerous, safe
from shellsight.words.form import Operands, form
from shellsight.words.places import here, uses
from shellsight.words.verbs import VERSION, Verbs, everyday, look

_ONLY_VERSION = VERSION - {"version", "help"} | {"-V", "-dumpversion", "-dumpmachine"}


def tool(call: Call) -> Outcome:
    """A developer's program: its version alone only looks, everything else acts on the project."""
    if len(call.args) == 1 and call.args[0].certain and call.args[0].text in _ONLY_VERSION:
        loads = call.name in _LOADING and call.args[0].text in {"--help", "-h"}
        return everyday(call) if loads else safe("shows its version or help")
    return everyday(call)


_LOADING = names(
    "pytest py.test flask django-admin celery nox invoke doit rake nx mix sbt tox just task alembic jest vitest"
)
"""Programs whose help depends on the project's own code, which they run to find out."""


def precommit(call: Call) -> Outcome:
    """`pre-commit`: runs the project's checks, or puts itself into git's hooks."""
    if {arg.text for arg in call.args} & {
        "install",
        "uninstall",
        "autoupdate",
        "clean",
        "gc",
        "init-templatedir",
        "try-repo",
    }:
        return dangerous("changes git's hooks, or fetches them", (), Effect.GIT_HISTORY)
    return tool(call)


def hyperfine(call: Call) -> Outcome:
    """`hyperfine`: its words are lines for a shell."""
    # An option's value may be glued to it: `--prepare=CODE`, `-pCODE`.
    lines = (re.sub(r"\A(--[a-z-]+=|-[a-zA-Z](?=.)|-.*)", "", arg.text) for arg in call.args if arg.certain)
    codes = tuple(
        Inner(code=line, floor=Standing.ORDINARY, reason="runs again and again")
        for line in lines
        if line and not line.isdigit()
    )
    if not all(arg.certain for arg in call.args):
        return evolve(dangerous("runs code that is put together in the line", (), Effect.RUNS_CODE), inline_code=True)
    return evolve(tool(call), inner=codes)


def coded(prefix: str) -> Judge:
    """A judge for programs with options that bring code of their own."""
    marks = prefixes(prefix)

    def judge(call: Call) -> Outcome:
        if any(arg.text.startswith(marks) for arg in call.args):
            return evolve(dangerous("an option that brings code", (), Effect.RUNS_CODE), inline_code=True)
        return tool(call)

    return judge


def cmake(call: Call) -> Outcome:
    """`cmake`: `-E` is a tool box that deletes, copies and runs; `-P` runs a script."""
    if call.args and call.args[0].text == "-E":
        rest = call.args[2:] if [arg.text for arg in call.args[1:2]] in (["env"], ["time"]) else ()
        while rest and ("=" in rest[0].text or rest[0].text.startswith("-")):
            rest = rest[1:]
        inner = (Inner(rest, floor=Standing.DANGEROUS, reason="run by cmake"),) if rest else ()
        return evolve(dangerous("deletes, copies or runs what its words say"), inner=inner)
    return tool(call)


def make(call: Call) -> Outcome:
    """`make`, recognised by each of its targets."""
    targets = sorted({arg.text for arg in call.args if not arg.text.startswith("-")})
    return evolve(_make(call), forms=tuple(("make", target) for target in targets))


def _make(call: Call) -> Outcome:
    """`make`: the project's own recipes; some targets reach further, some options bring other code."""
    if any(_FED_RECIPES.match(arg.text) for arg in call.args):
        return evolve(dangerous("runs recipes that it is fed", (), Effect.RUNS_CODE), runs_input=True)
    if any(arg.text.startswith(("--eval", "SHELL=", "-E", "MAKEFLAGS=", ".SHELLFLAGS")) for arg in call.args):
        return evolve(dangerous("runs code that is written in the line", (), Effect.RUNS_CODE), inline_code=True)
    targets = {arg.text for arg in call.args if not arg.text.startswith("-")}
    if targets & names("install uninstall deploy publish release upload push distclean clean-all nuke destroy"):
        return dangerous("a target that installs, publishes or destroys")
    if any(
        "=" in arg.text and not arg.text.startswith("-") and ("$" in arg.text or "`" in arg.text) for arg in call.args
    ):
        return dangerous("a variable that holds code", (), Effect.RUNS_CODE)
    return tool(call)


_FED_RECIPES = re.compile(r"-\Z|-\w+-\Z|--[a-z]+=-\Z|(?:-.*)?/(?:dev/stdin|dev/fd/0|proc/self/fd/0)\Z")
"""A word that names standard input as a file of recipes: by itself, or glued to its option."""

_RUFF_CHECK = form(
    (
        "qvse --diff --no-fix --preview --no-preview --no-cache --quiet --verbose --silent --statistics "
        "--show-files --show-settings --exit-zero --exit-non-zero-on-fix --no-unsafe-fixes --show-fixes "
        "--no-show-fixes --isolated --respect-gitignore --no-respect-gitignore --force-exclude --ignore-noqa -n"
    ),
    (
        "--select --ignore --extend-select --extend-ignore --line-length --target-version --output-format "
        "--exclude --extend-exclude --per-file-ignores --extension --min-confidence"
    ),
    Operands.COUNT,
    reads="--config",
    walks=True,
    keen=True,
    reason="checks, changes nothing",
)
_RUFF_FORMAT = form(
    "qvn --check --diff --preview --no-cache --quiet --verbose --isolated --force-exclude --respect-gitignore",
    "--line-length --target-version --exclude --range",
    Operands.COUNT,
    reads="--config",
    walks=True,
    keen=True,
)


def ruff(call: Call) -> Outcome:
    """ruff: checks without fixing only look."""
    texts = {arg.text for arg in call.args}
    if not call.args:
        return safe("shows help")
    verb, rest = call.args[0].text, evolve(call, args=call.args[1:])
    if verb == "check":
        outcome = _RUFF_CHECK(rest)
        return (
            outcome
            if not any(
                text.startswith(("--fix", "--unsafe-fixes", "--add-noqa", "-o", "--output-file", "--watch"))
                for text in texts
            )
            else _changed(call)
        )
    if verb == "format":
        return _RUFF_FORMAT(rest) if {"--check", "--diff"} & texts else _changed(call)
    if verb in names("rule linter version --version -V --help -h help config analyze"):
        return look("--all -h", "--output-format")(rest)
    return _changed(call) if verb == "clean" else everyday(call)


def _changed(call: Call) -> Outcome:
    files = tuple(
        use
        for arg in call.args[1:]
        if not arg.text.startswith("-")
        for use in uses(call, arg, PathEffect.WRITE, below=True)
    )
    outcome = everyday(call)
    return evolve(outcome, paths=(*outcome.paths, *(files or here(call, PathEffect.WRITE, below=True))))


_CHECKS = "checks, changes nothing"


def checker(needed: str, bare: str, valued: str = "", reads: str = "") -> Judge:
    """A judge for a formatter that changes nothing where one of the `needed` options is given."""
    known = form(f"{needed} {bare}", valued, Operands.COUNT, walks=True, reads=reads, keen=True, reason=_CHECKS)
    wanted = frozenset(needed.split())

    def judge(call: Call) -> Outcome:
        if len(call.args) == 1 and call.args[0].text in _ONLY_VERSION:
            return safe("shows its version or help")
        if not any(arg.text in wanted for arg in call.args):
            return everyday(evolve(call, args=call.args))
        outcome = known(call)
        return outcome if outcome.standing == 0 else everyday(call)

    return judge


_EVERYDAY = names(
    "pytest py.test unittest nose2 mypy pyright basedpyright ty pyre pylint flake8 pycodestyle pydocstyle "
    "pyflakes bandit vulture radon xenon coverage autopep8 yapf autoflake pyupgrade docformatter pre-commit "
    "nox sphinx-build mkdocs zensical cython maturin setup-py tsc vue-tsc eslint jest vitest mocha ava "
    "playwright cypress webpack vite rollup esbuild parcel turbo nx lerna next nuxt astro babel swc biome "
    "oxlint stylelint prettier standard xo tslint markdownlint markdownlint-cli2 vale cspell codespell typos "
    "yamllint hadolint shellcheck shfmt actionlint sqlfluff buf protoc rustc rustfmt clippy-driver gofmt "
    "goimports golangci-lint staticcheck gcc g++ cc c++ clang clang++ clang-format clang-tidy ld ar as "
    "ranlib strip cmake ctest cpack ninja meson bazel bazelisk buck2 scons autoconf automake configure "
    "pkg-config javac java kotlinc kotlin scalac sbt ant ktlint swiftc swift xcodebuild dune ocaml ghc hlint "
    "stylish-haskell mix rebar3 rake rspec rubocop minitest brakeman phpunit phpstan psalm php-cs-fixer zig "
    "nim crystal dart flutter just task invoke doit hyperfine lcov gcov gprof valgrind dot doxygen pandoc "
    "pdflatex latexmk lint-imports deptry import-linter pip-audit pip-compile interrogate pydeps snakeviz "
    "alembic django-admin flask uvicorn gunicorn hypercorn granian celery jupyter nbconvert jupytext "
    "pyinstaller nuitka stubgen stubtest monkeytype pyan3 mutmut cosmic-ray hypothesis behave robot locust "
    "licensecheck reuse towncrier bumpversion commitizen cz semantic-release punie"
)


def exempted(call: Call) -> Outcome:
    """Programs that reach out although they belong to the day."""
    if len(call.args) == 1 and call.args[0].text in _ONLY_VERSION:
        return safe("shows its version or help")
    return dangerous("publishes, or acts elsewhere", (), Effect.NETWORK)


TABLE: Mapping[str, Judge] = {
    **dict.fromkeys(_EVERYDAY, tool),
    "cmake": cmake,
    "make": make,
    "gmake": make,
    "ruff": ruff,
    "black": checker(
        "--check --diff",
        (
            "qvl S C -q -v --quiet --verbose --color --no-color --preview --fast --safe "
            "--skip-string-normalization --skip-magic-trailing-comma"
        ),
        "lt --line-length --target-version --include --exclude --extend-exclude --force-exclude --workers",
        "--config",
    ),
    "isort": checker(
        "--check --check-only --diff -c --df",
        "qv --quiet --verbose --profile=black --color",
        "--profile --line-length -l --settings-path",
        "",
    ),
    "gofmt": checker("-l -d", "-s -e", "", ""),
    "shellcheck": form(
        "aCxn -a -x --check-sourced --external-sources",
        "sfSePo --shell --format --severity --exclude --include --wiki-link-count --color",
        Operands.COUNT,
    ),
    "tsc": checker(
        "--noEmit", "--pretty --skipLibCheck --strict --listFiles --showConfig", "-p --project --target --module", ""
    ),
    "semantic-release": exempted,
    "buf": exempted,
    "java": coded(
        "-agentpath -agentlib -javaagent -cp -classpath --class-path -jar -Xbootclasspath -XX:OnError -XX:OnOut @"
    ),
    "ghc": coded("-e -F -pgm -package-env"),
    **dict.fromkeys(
        ("gcc", "g++", "cc", "c++", "clang", "clang++"), coded("-B -fplugin -wrapper -specs -Xclang -load @")
    ),
    "pre-commit": precommit,
    "hyperfine": hyperfine,
    "punie": always(dangerous("starts an agent")),
    "rustc": Verbs(
        looking={"--print": look()},
        versions=frozenset({"--version", "-V", "-vV", "--help", "-h"}),
        bare=everyday(Call("rustc", (), (), "")),
    ).judge,
}
