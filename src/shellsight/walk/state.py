"""The state of a shell on its way through a line: its directory, its variables, its functions."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import evolve, field, frozen

from shellsight.words.arguments import Arg

MOST_VALUES = 32
MOST_FOLDERS = 6


@frozen
class State:
    """The state before a command, as a set of what it may be.

    `cwds`: the directories the shell may be in, empty where none is known. `values`: the values that a variable may
    have; a name that is missing is unknown. `shadowed`: names that functions or aliases have taken.
    """

    cwds: tuple[str, ...]
    values: Mapping[str, tuple[Arg, ...]] = field(factory=dict[str, tuple[Arg, ...]])
    shadowed: frozenset[str] = frozenset()

    def holding(self, name: str, values: tuple[Arg, ...] | None) -> State:
        """The state in which the variable holds one of these; None for unknown."""
        changed = {key: value for key, value in self.values.items() if key != name}
        if values is not None and len(values) <= MOST_VALUES:
            changed[name] = values
        return evolve(self, values=changed)

    def somewhere(self) -> State:
        """The state with an unknown directory."""
        return evolve(self, cwds=())


def merged(one: State | None, other: State | None) -> State:
    """The state that covers both."""
    if one is None or other is None or one is other or one == other:
        return one or other or State(())
    folders = tuple(dict.fromkeys((*one.cwds, *other.cwds)))
    known = bool(one.cwds) and bool(other.cwds) and len(folders) <= MOST_FOLDERS
    values = {
        name: together
        for name in one.values.keys() & other.values.keys()
        if len(together := tuple(dict.fromkeys((*one.values[name], *other.values[name])))) <= MOST_VALUES
    }
    return State(folders if known else (), values, one.shadowed | other.shadowed)
