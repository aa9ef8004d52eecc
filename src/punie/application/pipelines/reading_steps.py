"""Reads the [[steps]] of a pipeline file."""

from __future__ import annotations

from collections.abc import Mapping
from keyword import iskeyword
from typing import cast

from attrs import define, field

from punie.domain.pipelines.expressions import Expression, Problem
from punie.domain.pipelines.pipeline import NO_ARGUMENTS, PARALLEL_DEFAULT, PARALLEL_LIMIT, OnError, Step
from punie.domain.pipelines.templates import Computed, Template, TemplateReader
from punie.domain.tools.tool import NAME_PATTERN
from punie.domain.values.json_value import JsonValue, NotJsonError, freeze

KEYS = ("id", "tool", "arguments", "when", "for_each", "parallel", "on_error")
_ID_LIMIT = 64


@define
class StepReader:
    """Reads the steps of one file, one after the other, and adds their problems to `problems`."""

    templates: TemplateReader
    problems: list[Problem]
    _ids: set[str] = field(factory=set[str], init=False)

    def read(self, value: object, place: int) -> Step | None:
        """The step that a value makes; None where the value is no table."""
        where = f"steps[{place}]"
        if not isinstance(value, Mapping):
            self._wrong("expected a table", where)
            return None
        table = cast("Mapping[str, object]", value)
        for key in table:
            if key not in KEYS:
                self._wrong(f"there is no such key; a step has {', '.join(KEYS)}", f"{where}.{key}")
        for_each = self._for_each(table, where)
        at_once, beside = self._parallel(table, where, loops=for_each is not None)
        on_error, fallback = self._on_error(table, where)
        return Step(
            id=self._id(table, where),
            tool=self._tool(table, where),
            arguments=self._arguments(table, where),
            when=self._when(table, where),
            for_each=for_each,
            at_once=at_once,
            beside=beside,
            on_error=on_error,
            fallback=fallback,
        )

    def _id(self, table: Mapping[str, object], where: str) -> str:
        said = table.get("id")
        if not isinstance(said, str) or not said.isidentifier() or iskeyword(said) or len(said) > _ID_LIMIT:
            self._wrong("expected a name of letters, digits and _, so that ${steps.ID} can name it", f"{where}.id")
            return f"step_{where}"
        if said in self._ids:
            self._wrong(f"another step is named {said} already", f"{where}.id")
        self._ids.add(said)
        return said

    def _tool(self, table: Mapping[str, object], where: str) -> str:
        said = table.get("tool")
        if not isinstance(said, str) or not NAME_PATTERN.fullmatch(said):
            self._wrong("expected the name of a tool, which no expression can stand for", f"{where}.tool")
            return "unnamed"
        return said

    def _arguments(self, table: Mapping[str, object], where: str) -> Template:
        said = table.get("arguments", {})
        if not isinstance(said, Mapping):
            self._wrong("expected a table: [steps.arguments], or { path = '...' }", f"{where}.arguments")
            return NO_ARGUMENTS
        return self.templates.read(cast("Mapping[str, object]", said), f"{where}.arguments")

    def _when(self, table: Mapping[str, object], where: str) -> Expression | bool:
        said = table.get("when", True)
        if isinstance(said, bool):
            return said
        if not isinstance(said, str):
            self._wrong("expected an expression, true or false", f"{where}.when")
            return True
        return self.templates.expression(said, f"{where}.when") or True

    def _for_each(self, table: Mapping[str, object], where: str) -> Template | None:
        said = table.get("for_each")
        if said is None:
            return None
        if isinstance(said, list):
            return self.templates.read(cast("list[object]", said), f"{where}.for_each")
        if isinstance(said, str):
            expression = self.templates.expression(said, f"{where}.for_each")
            return None if expression is None else Computed(expression)
        self._wrong("expected an expression that comes to a list, or a list", f"{where}.for_each")
        return None

    def _parallel(self, table: Mapping[str, object], where: str, *, loops: bool) -> tuple[int, bool]:
        said = table.get("parallel", False)
        if isinstance(said, bool):
            return (PARALLEL_DEFAULT, False) if said and loops else (1, said)
        if not isinstance(said, int) or not 1 <= said <= PARALLEL_LIMIT:
            self._wrong(f"expected true, false, or how many at once, from 1 to {PARALLEL_LIMIT}", f"{where}.parallel")
            return 1, False
        if not loops:
            self._wrong("a number is for steps with for_each; expected true or false", f"{where}.parallel")
        return said, False

    def _on_error(self, table: Mapping[str, object], where: str) -> tuple[OnError, JsonValue]:
        said = table.get("on_error", OnError.STOP.value)
        if isinstance(said, str) and said in {one.value for one in OnError}:
            return OnError(said), None
        if isinstance(said, Mapping) and set(cast("Mapping[str, object]", said)) == {"default"}:
            try:
                return OnError.CONTINUE, freeze(cast("Mapping[str, object]", said)["default"])
            except NotJsonError as error:
                self._wrong(str(error), f"{where}.on_error.default")
                return OnError.CONTINUE, None
        self._wrong("expected 'stop', 'continue', or { default = VALUE }", f"{where}.on_error")
        return OnError.STOP, None

    def _wrong(self, message: str, where: str) -> None:
        self.problems.append(Problem(message, where))
