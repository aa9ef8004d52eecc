"""What is wrong with a pipeline file, and where."""

from __future__ import annotations

from attrs import frozen


@frozen
class Problem:
    """One thing. `where` is the key (`steps[1].arguments.path`), `step` that step's id, or its number from 1.

    `line_1based` is the line of the file, `position_1based` the character in the string at that key; None where they
    are not known. A `warning` keeps nothing from running: a tool may be found later.
    """

    message: str
    where: str = ""
    step: str | None = None
    line_1based: int | None = None
    position_1based: int | None = None
    warning: bool = False

    def sentence(self) -> str:
        """All of it but file and line."""
        step = "" if self.step is None else f"step {self.step}, "
        character = "" if self.position_1based is None else f", character {self.position_1based}"
        place = f"{step}{self.where}{character}".removesuffix(", ")
        return f"{place}: {self.message}" if place else self.message
