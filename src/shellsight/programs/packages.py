"""Python's and JavaScript's package managers, and what runs inside their environments."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve

from shellsight.report import Effect, Standing
from shellsight.words.arguments import Arg, names
from shellsight.words.call import Call, Inner, Judge, Outcome, dangerous, ordinary, unknown
from shellsight.words.form import Operands, stricter
from shellsight.words.verbs import Verbs, far, look

_INSTALL = frozenset({Effect.INSTALL, Effect.NETWORK})
_PIP_LIST = look(
    (
        "l v q e --local --user --not-required --exclude-editable --include-editable "
        "--pre --editable --verbose --quiet --disable-pip-version-check --no-index"
    ),
    "--format --path --exclude",
)
_PIP = Verbs(
    looking={
        "list": _PIP_LIST,
        "show": look("f v q --files --verbose"),
        "freeze": look("l --local --user --all --exclude-editable", "--path --exclude"),
        "check": look(),
        "inspect": look("--local --user", "--path"),
        "debug": look("--verbose"),
        "help": look(),
    },
    far={
        **far("install uninstall download wheel", "installs, removes or fetches packages"),
        **far("index search", "reaches the network"),
        **far("config", "shows or changes settings"),
        **far("cache", "changes the cache"),
    },
    effects=_INSTALL,
    leading=names("--disable-pip-version-check -q --quiet --no-input --no-color"),
)
_UV = Verbs(
    looking={
        "version": look("--short", "--output-format", Operands.NONE),
        "python": Verbs(
            looking={"list": look("--all-versions --only-installed --offline"), "find": look(), "dir": look()},
            far=far("install uninstall pin", "installs interpreters"),
            effects=_INSTALL,
        ).judge,
        "pip": Verbs(
            looking={
                "list": _PIP_LIST,
                "show": look("f v q"),
                "freeze": look("l --user"),
                "check": look(),
                "tree": look(),
            },
            far=far("install uninstall sync compile", "installs or removes packages"),
            effects=_INSTALL,
        ).judge,
        "cache": Verbs(looking={"dir": look(), "size": look()}, far=far("clean prune", "deletes the cache")).judge,
    },
    far={
        **far("add remove sync lock init", "installs or removes packages"),
        **far("publish", "publishes"),
        **far("tool x self", "installs or runs programs"),
        **far("auth", "handles secrets"),
    },
    building=names("build format tree"),
    effects=_INSTALL,
)


def running(verb: str, plain: Verbs, *, quiet: str = "", floor: Standing = Standing.ORDINARY) -> Judge:
    """A judge for a manager whose `verb` runs another command inside its environment."""
    allowed = names(quiet)

    def judge(call: Call) -> Outcome:
        if not call.args or call.args[0].text != verb:
            return plain.judge(call)
        rest = call.args[1:]
        strict, reason = floor, "runs in the project's environment"
        while rest and rest[0].text.startswith("-"):
            if rest[0].text == "--":
                rest = rest[1:]
                break
            if rest[0].text not in allowed:
                strict, reason = Standing.DANGEROUS, f"an option that may install or load more: {rest[0].text}"
            rest = rest[1:]
        if not rest:
            return unknown("nothing to run")
        return Outcome(strict, reason, inner=(Inner(rest, floor=strict, reason=reason),), own=False)

    return judge


_POETRY = Verbs(
    looking={
        "show": look("t T a --tree --all --top-level --no-dev", "--with --without --only"),
        "check": look("--lock --strict"),
        "env": Verbs(
            looking={"info": look("p e --path --executable"), "list": look("--full-path")},
            far=far("use remove", "changes environments"),
        ).judge,
        "about": look(),
        "version": look("s --short", "", Operands.NONE),
    },
    far={
        **far("add remove install update lock sync self new init", "installs or removes packages"),
        **far("publish", "publishes"),
        **far("config source cache", "changes settings"),
    },
    building=names("build"),
    effects=_INSTALL,
)
_MANAGER = Verbs(
    far=far(
        "add remove install update lock sync self new init publish create shell",
        "installs, removes or publishes packages",
    ),
    building=names("build test lint fmt"),
    effects=_INSTALL,
)
_NPM_SAFE: Mapping[str, Judge] = {
    **dict.fromkeys(
        ("ls", "list", "la", "ll"),
        look(
            (
                "a l g --all --long --json --parseable --global --production --prod --dev -r --recursive --link "
                "--unicode --no-unicode --package-lock-only"
            ),
            "--depth --omit --include --filter -F",
            loose="--depth",
        ),
    ),
    "why": look("--json"),
    "explain": look("--json"),
    "prefix": look("g --global"),
    "root": look("g --global"),
    "bin": look("g --global"),
    "help": look(),
    "licenses": look("--json --prod", ""),
    "query": look(),
    "workspaces": Verbs(looking={"list": look("--json"), "info": look("--json")}).judge,
}
_NPM_FAR = {
    **far(
        (
            "install i ci add remove uninstall rm un update up upgrade dedupe prune rebuild link unlink "
            "install-test it install-ci-test create init import patch patch-commit fetch store clean-install dlx "
            "global"
        ),
        "installs or removes packages",
    ),
    **far(
        (
            "publish unpublish deprecate dist-tag owner access team token login logout adduser profile hook org "
            "whoami star unstar"
        ),
        "acts on the registry",
    ),
    **far("config set get cache c", "shows or changes settings"),
    **far("audit outdated view info search ping doctor fund docs repo bugs show v", "reaches the network"),
    **far("version self", "changes versions, makes commits"),
}
_NPM = Verbs(
    looking=_NPM_SAFE,
    far=_NPM_FAR,
    building=names(
        "run run-script test t tst start stop restart build lint dev typecheck check format pack fmt compile"
    ),
    effects=_INSTALL,
    leading=names("-s --silent --json -w -r --recursive"),
    versions=names("--version -v --help -h help"),
)


def npm(call: Call) -> Outcome:
    """npm, pnpm, bun: `exec` runs a program, which may be fetched first."""
    if call.args[:1] and call.args[0].text in {"exec", "x"}:
        return fetched(evolve(call, args=call.args[1:]))
    if call.name == "bun" and call.args and call.args[0].text in {"-e", "--eval", "-p"}:
        return evolve(dangerous("runs code that is written in the line", (), Effect.RUNS_CODE), inline_code=True)
    return evolve(_NPM.judge(call), forms=_scripts(call))


_SHORT = {"t": "test", "tst": "test", "i": "install", "rm": "uninstall", "up": "update"}


def _scripts(call: Call) -> tuple[tuple[str, ...], ...]:
    """The ways to say the same: `npm t`, `npm run test`."""
    words = [arg.text for arg in call.args if arg.certain and not arg.text.startswith("-")]
    if words[:1] and words[0] in {"run", "run-script"}:
        return ((call.name, *words[1:]),)
    return ((call.name, _SHORT.get(words[0], words[0]), *words[1:]),) if words else ()


def yarn(call: Call) -> Outcome:
    """Yarn runs the project's own copy of itself, whatever it is told; bare, it installs."""
    if not call.args:
        return dangerous("installs packages", (), Effect.INSTALL, Effect.NETWORK)
    return stricter(_NPM.judge(call), ordinary("runs the project's own yarn"))


def pnpm(call: Call) -> Outcome:
    """Pnpm runs the project's own hooks and version of itself."""
    return stricter(npm(call), ordinary("runs the project's own pnpm"))


def fetched(call: Call) -> Outcome:
    """`npx` and its kin: a program that may be fetched and run."""
    rest = call.args
    while rest and rest[0].text.startswith("-"):
        if rest[0].text in {"-c", "--call"} and all(arg.certain for arg in rest[1:2]):
            return evolve(
                dangerous("runs code that is written in the line", (), Effect.RUNS_CODE),
                inline_code=True,
                inner=(
                    Inner(code="".join(arg.text for arg in rest[1:2]), floor=Standing.DANGEROUS, reason="run by npx"),
                ),
            )
        if rest[0].text.startswith("--call=") and rest[0].certain:
            rest = (Arg("--call"), Arg(rest[0].text.removeprefix("--call=")))
            continue
        rest = rest[2:] if rest[0].text in {"-p", "--package"} else rest[1:]
    # Behind the program, `--no-install` is a word for the program.
    if any(arg.text == "--no-install" for arg in call.args[: len(call.args) - len(rest)]) and rest:
        return Outcome(
            Standing.ORDINARY,
            "runs the project's program",
            inner=(Inner(rest, floor=Standing.ORDINARY, reason="runs the project's program"),),
            own=False,
        )
    inner = (
        (Inner(rest, floor=Standing.DANGEROUS, reason="may fetch a program and run it", effects=_INSTALL),)
        if rest
        else ()
    )
    return Outcome(Standing.DANGEROUS, "may fetch a program and run it", effects=_INSTALL, inner=inner)


_BUNDLE = Verbs(
    building=names("list show info check platform"),
    far=far("install update add remove clean config lock cache package init outdated", "installs or removes packages"),
    effects=_INSTALL,
)
_PIPX = Verbs(
    looking={"list": look("--short --json"), "environment": look()},
    far=far(
        "install uninstall run inject upgrade upgrade-all reinstall ensurepath uninstall-all runpip",
        "installs or runs programs",
    ),
    effects=_INSTALL,
)
_RUNNING = "--frozen --locked --no-sync --offline -q --quiet --isolated --no-dev --active -v --verbose"
TABLE: Mapping[str, Judge] = {
    **dict.fromkeys(("pip", "pip3", "pip2"), _PIP.judge),
    "uv": running("run", _UV, quiet=_RUNNING),
    "poetry": running("run", _POETRY, quiet="-q --quiet --no-ansi"),
    "pdm": running("run", _MANAGER),
    "hatch": running("run", _MANAGER),
    "pipenv": running("run", _MANAGER),
    "rye": running("run", _MANAGER),
    "pixi": running("run", _MANAGER),
    "uvx": fetched,
    "pipx": _PIPX.judge,
    "npx": fetched,
    "pnpx": fetched,
    "bunx": fetched,
    "npm": npm,
    "pnpm": pnpm,
    "bun": npm,
    "yarn": yarn,
    "bundle": running("exec", _BUNDLE),
    "bundler": running("exec", _BUNDLE),
}
