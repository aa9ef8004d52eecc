"""What a session's tools cost a model to read, in the three forms of disclosure and by server (ruling R-12)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from attrs import frozen

from punie.adapters.console.tables import table
from punie.application.tools.search_tools import SearchTools
from punie.domain.tools.catalog import ToolCatalog
from punie.domain.tools.definition import estimated_tokens, tokens_of
from punie.domain.tools.disclosure import SEARCH_TOOLS, DisclosureForm, DisclosurePolicy, by_server, listing
from punie.domain.tools.tool import ToolDescriptor

_FORMS = (DisclosureForm.FULL, DisclosureForm.LINES, DisclosureForm.NAMES)


@frozen
class ServerCosts:
    """What one server's tools cost in each form; those that are always loaded cost the same in all."""

    server: str
    tools: int
    tokens: Mapping[DisclosureForm, int]


@frozen
class Costs:
    """All of it: `form` is in force, `total` is what each model request carries in it; figures are estimated tokens."""

    form: DisclosureForm
    total: int
    forms: Mapping[DisclosureForm, int]
    servers: tuple[ServerCosts, ...]
    tools: tuple[ToolDescriptor, ...]


def costs_of(every: ToolCatalog, policy: DisclosurePolicy) -> Costs:
    """The costs of every enabled tool under that policy, none of them picked yet."""
    ours = every.by_name(SEARCH_TOOLS) == SearchTools.DESCRIPTOR
    tools = (every.without((SEARCH_TOOLS,)) if ours else every).tools
    others = tuple(tool for tool in tools if not policy.keeps(tool))
    search = estimated_tokens(SearchTools.DESCRIPTOR) if others else 0
    forms = {form: _in_form(tools, form, policy) + (0 if form is DisclosureForm.FULL else search) for form in _FORMS}
    servers = tuple(
        ServerCosts(server, len(served), {form: _in_form(served, form, policy) for form in _FORMS})
        for server, served in by_server(tools).items()
    )
    dearest_first = tuple(sorted(tools, key=lambda tool: -estimated_tokens(tool)))
    in_force = policy.form_for(others)
    return Costs(in_force, forms[in_force], forms, servers, dearest_first)


def as_costs(costs: Costs) -> dict[str, object]:
    """For programs."""
    return {
        "estimate": True,
        "total": costs.total,
        "form": costs.form.value,
        "forms": {form.value: tokens for form, tokens in costs.forms.items()},
        "servers": [
            {"server": one.server, "tools": one.tools, **{form.value: tokens for form, tokens in one.tokens.items()}}
            for one in costs.servers
        ],
        "tools": [{"name": tool.name, "tokens": estimated_tokens(tool)} for tool in costs.tools],
    }


def as_cost_table(costs: Costs) -> str:
    """For a person."""
    headings = ("SERVER", "TOOLS", *(form.value.upper() for form in _FORMS))
    rows = [(one.server, one.tools, *(one.tokens[form] for form in _FORMS)) for one in costs.servers]
    in_all = ("in all", len(costs.tools), *(costs.forms[form] for form in _FORMS))
    return (
        f"{table(('NAME', 'TOKENS'), [(tool.name, estimated_tokens(tool)) for tool in costs.tools])}\n"
        f"{table(headings, [*rows, in_all])}\n"
        f"About {costs.total} tokens go with each model request, in the form {costs.form.value}.\n"
        "All figures are estimates at 4 characters a token.\n"
    )


def _in_form(served: Iterable[ToolDescriptor], form: DisclosureForm, policy: DisclosurePolicy) -> int:
    tools = tuple(served)
    kept = _full(tool for tool in tools if policy.keeps(tool))
    return kept + _cost(tuple(tool for tool in tools if not policy.keeps(tool)), form)


def _cost(others: tuple[ToolDescriptor, ...], form: DisclosureForm) -> int:
    return _full(others) if form is DisclosureForm.FULL else tokens_of(listing(others, form))


def _full(tools: Iterable[ToolDescriptor]) -> int:
    return sum(map(estimated_tokens, tools))
