"""Judges of programs that reach other machines and clusters."""

from __future__ import annotations

from collections.abc import Iterator

from shellsight.report import Effect, PathEffect, PathUse, Standing
from shellsight.words.arguments import Arg, options
from shellsight.words.call import Call, Inner, Judge, Outcome, safe
from shellsight.words.places import uses
from shellsight.words.verbs import look

_NETWORK = frozenset({Effect.NETWORK})


def network(source: str = "network") -> Judge:
    """A judge for programs that reach the network; what they print came from there."""

    def judge(call: Call) -> Outcome:
        if len(call.args) == 1 and call.args[0].certain and call.args[0].text in {"--version", "-V", "--help"}:
            return safe("shows its version or help")
        paths = tuple(use for arg in call.args for use in _files(call, arg))
        return Outcome(Standing.DANGEROUS, "reaches the network", paths, _NETWORK, source=source)

    return judge


def _files(call: Call, arg: Arg) -> Iterator[PathUse]:
    text = arg.text.rpartition("@")[2] if "@" in arg.text else arg.text
    if arg.certain and text.startswith(("/", "~", "./", "../", ".")) and "://" not in text:
        yield from uses(call, Arg(text), PathEffect.READ)


def remote_shell(call: Call) -> Outcome:
    """`ssh HOST COMMAND`: the command runs elsewhere, and is looked at all the same."""
    if len(call.args) == 1 and call.args[0].text == "-V":
        return safe("shows its version")
    reading = options("1246AaCfGgKkMNnqsTtVvXxYy", "BbcDEeFIiJLlmOopQRSWw", first=True).read(call.args)
    rest = reading.operands[1:]
    inner = ()
    if rest and all(arg.certain for arg in rest):
        code = " ".join(arg.text for arg in rest)
        inner = (
            Inner(code=code, floor=Standing.DANGEROUS, reason="runs on another machine", effects=_NETWORK, cwd=""),
        )
    return Outcome(
        Standing.DANGEROUS, "reaches another machine", (), _NETWORK, inline_code=True, inner=inner, source="network"
    )


def client_version(call: Call) -> Outcome:
    """`kubectl version`: asks the cluster too, unless `--client` is given."""
    if not any(arg.text in {"--client", "--client=true"} for arg in call.args):
        return Outcome(Standing.DANGEROUS, "asks the cluster", (), _NETWORK)
    return look("--client --short", "o --output", optional="--client")(call)
