"""Programs that are told by their first word what to do: `pip list`, `npm run build`, `docker ps`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from attrs import evolve, field, frozen

from shellsight.report import Effect
from shellsight.words.arguments import names
from shellsight.words.call import Call, Judge, Outcome, dangerous, ordinary, safe, unknown
from shellsight.words.form import Operands, form
from shellsight.words.places import named_places

VERSION = names("--version --help -h -V version help -version -v")


NOT_TOLD = unknown("nobody told what it does by itself")


@frozen
class Verbs:
    """What a program's first words mean.

    `looking`: verbs that only look, each with a judge for what follows. `building`: everyday verbs with effects on the
    project. `far`: dangerous ones. `leading`: options that may stand before the verb. `versions`: words that show a
    version when they stand alone.
    """

    looking: Mapping[str, Judge] = field(factory=dict[str, Judge])
    building: frozenset[str] = frozenset()
    far: Mapping[str, str] = field(factory=dict[str, str])
    effects: frozenset[Effect] = frozenset()
    leading: frozenset[str] = frozenset()
    versions: frozenset[str] = VERSION
    bare: Outcome = NOT_TOLD

    def judge(self, call: Call) -> Outcome:
        """What the call does."""
        args = call.args
        if len(args) == 1 and args[0].certain and args[0].text in self.versions:
            return safe("shows its version or help")
        while args and args[0].certain and args[0].text in self.leading:
            args = args[1:]
        if not args:
            return self.bare
        verb = args[0]
        if not verb.certain:
            return unknown(f"nobody knows what {call.name} is told to do")
        if verb.text in self.far:
            return evolve(dangerous(f"{call.name} {verb.text}: {self.far[verb.text]}"), effects=self.effects)
        if verb.text in self.looking:
            return self._look(evolve(call, args=args[1:]), verb.text)
        if verb.text in self.building:
            return everyday(evolve(call, args=args[1:]))
        return unknown(f"nothing is known of {call.name} {verb.text}")

    def _look(self, call: Call, verb: str) -> Outcome:
        """A verb may hold verbs of its own (`docker image ls`)."""
        if len(call.args) == 1 and call.args[0].text in {"--help", "-h"}:
            return safe("shows help")
        return self.looking[verb](evolve(call, name=f"{call.name} {verb}"))


RUNNERS = names(
    "npm pnpm yarn bun rake just task invoke make gmake mix nx lerna turbo gulp grunt fab doit poe nox "
    "tox hatch sbt gradle mvn ant dotnet flask django-admin alembic"
)
FAR_WORDS = names(
    "deploy deployment publish release drop destroy purge wipe nuke reset rollback upload push prod "
    "production flush dropdb downgrade gh-deploy bump uninstall teardown migrate seed truncate"
)
"""What tasks are called that do more than build and check."""


_REACHES = re.compile(r"\b(?!file:)[a-z][a-z0-9+.]*://(?!(localhost|127\.0\.0\.1|\[::1\])\b)|(\A|=|:)0\.0\.0\.0\b")
"""An address on another machine, or that of all of this machine's networks."""


def everyday(call: Call) -> Outcome:
    """An everyday program with effects on the project: words that look like places are places."""
    found = [use for arg in call.args for use in named_places(call, arg)]
    far_off = next((arg.text for arg in call.args if _REACHES.search(arg.text)), None)
    if far_off is not None:
        return dangerous(f"reaches the network, or is reached from it: {far_off}", tuple(found), Effect.NETWORK)
    if any(arg.text.lower() in FAR_WORDS for arg in call.args):
        return dangerous("a verb that sounds far-reaching", tuple(found))
    if call.name in RUNNERS:
        far_words = {word for arg in call.args for word in re.split(r"[^a-z]+", arg.text.lower())} & FAR_WORDS
        if far_words:
            return dangerous(f"a task that sounds far-reaching: {min(far_words)}", tuple(found))
    return ordinary(f"{call.name}: builds, checks or changes the project", tuple(found))


def look(bare: str = "", valued: str = "", operands: Operands = Operands.TEXT, **more: Any) -> Judge:
    """A judge for a verb that only looks, with these options."""
    return form(f"{bare} --help -h", valued, operands, **more)


def far(text: str, reason: str) -> dict[str, str]:
    """Verbs from one string, each with the same reason."""
    return dict.fromkeys(text.split(), reason)


def each(known: str, judge: Judge) -> dict[str, Judge]:
    """Programs from one string, all with one judge."""
    return dict.fromkeys(known.split(), judge)
