"""`python -m tests.oracle`: run what runs unasked where everything is a trap; exit 1 with findings, 2 when broken."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from tests.oracle.cage import STAGE, bound, enter, start
from tests.oracle.effects import Judge
from tests.oracle.forms import Form, Policy, all_lines
from tests.oracle.running import Ran, Runner, installed
from tests.oracle.traps import Place

_PROGRESS_S = 20.0
_SHOWN = 3
"""Lines shown of each program and class of finding; `--json` has all."""


def _options(argv: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.oracle",
        description="Run every call form that read-only runs unasked, in a repository of traps, and judge what it did.",
        epilog="Exit code 1: a form whose programs load nothing of a project had an effect.",
    )
    parser.add_argument("--program", action="append", default=[], metavar="NAME", help="only this program (repeatable)")
    parser.add_argument("--limit", type=int, default=40, help="pairs of options for each program and each of its verbs")
    parser.add_argument("--seed", type=int, default=0, help="the choice of pairs and operands")
    parser.add_argument("--plain", action="store_true", help="only forms that are said to load nothing of a project")
    parser.add_argument("--list", action="store_true", help="print the forms, and run nothing")
    parser.add_argument("--uncaged", action="store_true", help="run without namespaces around everything")
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout, with every form")
    return parser.parse_args(argv)


def _oracle(place: Place, options: argparse.Namespace) -> int:
    bound()
    traps, path, runner_path = place.lay(), os.environ["PATH"], os.environ["PATH"]
    policy = Policy.of(place.project, place.home)
    lines = all_lines(options.seed, options.limit, frozenset(options.program))
    here = {name: installed(name, path) for name in lines}
    forms = [form for name, made in lines.items() for form in policy.forms(name, made)]
    forms = [form for form in forms if form.plain or not options.plain]
    if options.list:
        sys.stdout.writelines(f"{form.program}{' plain' if form.plain else ''}: {form.line}\n" for form in forms)
        return 0
    missing = Counter(form.program for form in forms if not here[form.program])
    runner = Runner(place, Judge.of(place, path), path=runner_path)
    ran = _all(runner, [form for form in forms if here[form.program]])
    broken = [one for one in ran if one.form.plain and one.findings]
    if options.json:
        print(json.dumps({"ok": not broken, "traps": traps, "missing": missing, "forms": [_told(one) for one in ran]}))
    else:
        _report(ran, missing, traps)
    return 1 if broken else 0


def _all(runner: Runner, forms: Sequence[Form]) -> list[Ran]:
    ran: list[Ran] = []
    began = told = time.monotonic()
    try:
        for form in forms:
            ran.append(runner.run(form))
            if time.monotonic() - told > _PROGRESS_S:
                told = time.monotonic()
                found = sum(bool(one.findings) for one in ran)
                print(
                    f"oracle: {len(ran)} of {len(forms)} forms, {found} findings, {told - began:.0f} s", file=sys.stderr
                )
    except KeyboardInterrupt:
        print(f"oracle: interrupted after {len(ran)} of {len(forms)} forms", file=sys.stderr)
    return ran


def _report(ran: Sequence[Ran], missing: Counter[str], traps: int) -> None:
    wrong = [one for one in ran if one.findings]
    broken = [one for one in wrong if one.form.plain]
    _print_findings("held by the box only", [one for one in wrong if not one.form.plain])
    _print_findings("FAILED, a plain form", broken)
    kinds = Counter(kind for one in ran for kind in {effect.kind for effect in one.effects})
    programs, plain = len({one.form.program for one in ran}), sum(one.form.plain for one in ran)
    print(f"not installed: {sum(missing.values())} forms of {len(missing)} programs: {' '.join(sorted(missing))}")
    print(f"forms: {len(ran)} run, {plain} of them plain, of {programs} programs; {sum(one.slow for one in ran)} slow")
    print(f"traps: {traps} files; forms by kind of effect: {dict(kinds.most_common())}")
    print(f"findings: {len(wrong)} forms, {len(broken)} of them plain")


def _print_findings(title: str, ones: Sequence[Ran]) -> None:
    by_class: dict[tuple[str, str], list[Ran]] = {}
    for one in ones:
        for kind in {effect.kind for effect in one.findings}:
            by_class.setdefault((kind, one.form.program), []).append(one)
    for (kind, program), some in sorted(by_class.items()):
        print(f"{title}: {kind}: {program}: {len(some)} forms")
        for one in some[:_SHOWN]:
            whats = ", ".join(effect.what for effect in one.findings if effect.kind == kind)
            print(f"    {one.form.line!a}: {whats[:160]!a}")


def _told(one: Ran) -> dict[str, Any]:
    effects = [[effect.kind, ascii(effect.what)[1:-1]] for effect in sorted(one.effects)]
    return {
        "program": one.form.program,
        "line": one.form.line,
        "plain": one.form.plain,
        "slow": one.slow,
        "effects": effects,
    }


def main(argv: Sequence[str] | None = None) -> int:
    """Run, print, and say by the exit code whether plain forms had no effect."""
    words = list(sys.argv[1:] if argv is None else argv)
    options = _options(words)
    stage, _, folder = os.environ.pop(STAGE, "").partition(":")
    if stage == "run":
        return _oracle(Place(Path(folder)), options)
    if stage == "cage":
        enter(Path(folder), words)
    if shutil.which("strace") is None:
        sys.stderr.write("oracle: strace is not installed\n")
        return 2
    base = Path(mkdtemp(prefix="oracle-"))
    try:
        return _oracle(Place(base), options) if options.uncaged else start(base, words)
    finally:
        shutil.rmtree(base, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
