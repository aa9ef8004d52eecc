"""Everyday programs that an option or a word makes run code of the line, or act further than a project's day."""

from __future__ import annotations

import re
from collections.abc import Mapping

from attrs import evolve

from shellsight.report import Effect, Standing
from shellsight.words.arguments import names, prefixes
from shellsight.words.call import Call, Inner, Judge, Outcome, dangerous, ordinary, safe
from shellsight.words.form import stricter
from shellsight.words.places import named_places
from shellsight.words.verbs import FAR_WORDS, everyday

_CODED: Mapping[str, str] = {
    "pylint": "--init",
    "pandoc": "--filter -F --lua-filter -L --pdf-engine -d --defaults",
    "mypy": "--python-e --install",
    "pyright": "--pythonpath",
    "basedpyright": "--pythonpath",
    "latexmk": (
        "-e --e -r -pdflatex= --pdflatex= -latex= --latex= -xelatex= --xelatex= -lualatex= --lualatex= -shell-escape "
        "--shell-escape"
    ),
    "pdflatex": "-shell-escape --shell-escape -enable-write18 --enable-write18 \\",
    "mix": "-e --eval -r --require eval cmd",
    "rake": "-e -E -p --execute --eval",
    "swift": "-e -load",
    "ocaml": "-e -init -pp",
    "kotlin": "-e -expression",
    "crystal": "eval",
    "sbt": "eval",
    "flask": "shell",
    "django-admin": "shell dbshell",
    "celery": "shell",
    "protoc": "--plugin",
    "ld": "-plugin --plugin",
}
"""How words begin that bring code, or name a program that runs, by program."""

_FAR: Mapping[str, str] = {
    "bazel": "clean shutdown",
    "bazelisk": "clean shutdown",
    "celery": "purge",
    "cmake": "--install install",
    "flutter": "clean upgrade",
    "meson": "install",
    "ninja": "install uninstall",
}
"""Words that delete, install or empty, by program."""


def bringing(words: str, otherwise: Judge) -> Judge:
    """A judge who finds code in a call with a word that begins so."""
    marks = prefixes(words)

    def judge(call: Call) -> Outcome:
        if any(arg.text.startswith(marks) for arg in call.args):
            return evolve(dangerous("a word that brings code", (), Effect.RUNS_CODE), inline_code=True)
        return otherwise(call)

    return judge


def reaching(words: str, otherwise: Judge) -> Judge:
    """A judge who asks about these words."""
    known = names(words)

    def judge(call: Call) -> Outcome:
        found = known.intersection(arg.text for arg in call.args)
        return dangerous(f"{call.name} {min(found)}: installs, deletes or empties") if found else otherwise(call)

    return judge


_CONSOLES = names("shell dbshell createsuperuser changepassword remove delete")


def manage(call: Call) -> Outcome:
    """Django's `manage.py`: the project's own commands; some open consoles, or change what a data base holds."""
    first = next((arg.text for arg in call.args if not arg.text.startswith("-")), "")
    words = set(re.split(r"[^a-z]+", first.lower()))
    if words & (FAR_WORDS | _CONSOLES):
        return dangerous(f"manage.py {first}: a console, or a change to the data base")
    return ordinary("runs a command of the project", tuple(use for arg in call.args for use in named_places(call, arg)))


def managed(otherwise: Judge) -> Judge:
    """A judge for Python who knows what `manage.py` is told."""

    def judge(call: Call) -> Outcome:
        for place, arg in enumerate(call.args):
            if arg.text == "manage.py" or arg.text.endswith("/manage.py"):
                told = manage(evolve(call, args=call.args[place + 1 :]))
                return told if told.standing > Standing.ORDINARY else otherwise(call)
        return otherwise(call)

    return judge


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


def valgrind(call: Call) -> Outcome:
    """`valgrind PROGRAM`: runs it."""
    if [arg.text for arg in call.args] in (["--version"], ["--help"]):
        return safe("shows its version or help")
    rest = call.args
    while rest and rest[0].text.startswith("-"):
        rest = rest[1:]
    own = everyday(evolve(call, args=call.args[: len(call.args) - len(rest)]))
    if not rest:
        return own
    inner = Inner(rest, floor=Standing.ORDINARY, reason="runs under control")
    return evolve(own, inner=(inner,))


def laid_over(known: Mapping[str, Judge]) -> dict[str, Judge]:
    """The judges of all programs, with this module's words looked for first."""
    judges = {**known, "manage.py": manage, "valgrind": valgrind}
    for name in known:
        if re.fullmatch(r"(python|pypy)[\d.]*", name):
            judges[name] = managed(known[name])
    for name in ("cargo", "mvn"):
        judges[name] = steered(known[name])
    for name, words in _CODED.items():
        judges[name] = bringing(words, judges.get(name, everyday))
    for name, words in _FAR.items():
        judges[name] = reaching(words, judges.get(name, everyday))
    return judges
