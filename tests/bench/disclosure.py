"""What sixty tools of other servers cost a model to read, in tokens (R-12; issue 5, section 5)."""

from __future__ import annotations

import json
from collections.abc import Iterable

from punie.application.tools.search_tools import SearchTools
from punie.domain.definition import encode_definition
from punie.domain.disclosure import DisclosureForm, listing
from punie.domain.tool import ToolDescriptor
from tests.bench.client import Broken
from tests.bench.figures import Row, amount
from tests.bench.world import World
from tests.fakes.sixty_tools import sixty_tools
from tests.fakes.tokens import count_tokens, missing_reason

LIMITS = {DisclosureForm.FULL: None, DisclosureForm.LINES: 24.0, DisclosureForm.NAMES: 5.0}
"""Tokens a tool, the search tool counted in."""


def disclosure(_world: World) -> list[Row]:
    """The three forms of the pinned catalogue, counted with cl100k_base."""
    reason = missing_reason()
    if reason is not None:
        raise Broken(reason)
    tools = sixty_tools()
    told = {
        DisclosureForm.FULL: sent(tools),
        **{form: listing(tools, form) + sent([SearchTools.DESCRIPTOR]) for form in LIMITS if form.value != "full"},
    }
    counts = count_tokens(*told.values())
    return [
        amount("disclosure", f"tokens of a tool of sixty, {form.value}", [count / len(tools)], LIMITS[form], unit="tok")
        for form, count in zip(told, counts, strict=True)
    ]


def sent(tools: Iterable[ToolDescriptor]) -> str:
    """The tools' schemas, as short as they are sent."""
    return json.dumps([encode_definition(tool) for tool in tools], ensure_ascii=False, separators=(",", ":"))
