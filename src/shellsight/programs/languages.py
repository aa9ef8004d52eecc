"""Judges of package managers and build tools of single languages."""

from __future__ import annotations

from shellsight.report import Effect
from shellsight.words.call import Call, Judge, Outcome, dangerous, ordinary, safe
from shellsight.words.form import Operands, form, stricter
from shellsight.words.verbs import everyday, look, verbs

_GO = verbs(
    looking={
        "version": look("m v"),
        "env": form("json changed", "", Operands.TEXT, single=True),
        "list": form(
            "m json f deps test e find -m -json -deps -test -e -find -mod=readonly",
            "-f",
            Operands.TEXT,
            single=True,
        ),
        "doc": form("-all -src -short -u -c -cmd", "", Operands.TEXT, single=True),
        "help": look(),
        "vet": everyday,
    },
    far={"installs packages": "get install", "deletes what was built": "clean"},
    building="build test run fmt fix generate mod work tool vet",
    effects=(Effect.INSTALL, Effect.NETWORK),
    versions="version help env",
)


def go(call: Call) -> Outcome:
    """go: `go env -w` changes settings, `-exec` and `-toolexec` run programs."""
    texts = [arg.text.lstrip("-") for arg in call.args]
    if texts[:1] == ["env"] and any(arg.text in {"-w", "-u"} for arg in call.args):
        return dangerous("changes Go's settings", (), Effect.ENVIRONMENT)
    if any(text.startswith(("toolexec", "exec", "overlay", "vettool", "modfile")) for text in texts[1:]):
        return dangerous("runs the program that an option names", (), Effect.RUNS_CODE)
    if texts[:2] in (["mod", "download"], ["mod", "tidy"], ["mod", "edit"]):
        return dangerous("reaches the network or changes dependencies", (), Effect.NETWORK)
    if texts[:1] == ["run"] and any("@" in text for text in texts):
        return dangerous("fetches a program and runs it", (), Effect.INSTALL, Effect.NETWORK)
    return _GO(call)


def elsewhere(call: Call) -> Outcome:
    """Programs that install, publish or act on machines elsewhere: only their version looks."""
    if len(call.args) == 1 and call.args[0].text in {"--version", "--help"}:
        return safe("shows its version")
    return dangerous("installs, publishes or acts on machines elsewhere", (), Effect.INSTALL, Effect.NETWORK)


def terraform_fmt(call: Call) -> Outcome:
    """`terraform fmt`: rewrites files, unless it only checks."""
    outcome = form("-check -diff -recursive", "", Operands.TEXT, single=True)(call)
    return outcome if any(arg.text == "-check" for arg in call.args) else everyday(call)


def steered(otherwise: Judge) -> Judge:
    """A judge for a program that starts what the project's settings name, even to look.

    `cargo tree` and `cargo metadata` ask the compiler that `.cargo/config.toml` names (`build.rustc`); Maven starts
    Java with the options in `.mvn/jvm.config`, agents among them, even to print its version.
    """

    def judge(call: Call) -> Outcome:
        texts = {arg.text for arg in call.args}
        outcome = otherwise(call)
        if call.name == "cargo" and (not {"tree", "metadata"} & texts or "--no-deps" in texts):
            return outcome
        return stricter(outcome, ordinary("starts what the project's settings name"))

    return judge
