"""What the built-in tools say of themselves beyond what a model is sent."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from attrs import evolve

from punie.adapters.schema.argument_validator import JsonSchemaRsValidator
from punie.application.offer import assemble as assemble_tools
from punie.application.tools.built_in import BuiltInTool
from punie.application.tools.details import DETAILS
from punie.domain.permission.policy import UNASKED_BUILT_INS
from punie.domain.tools.definition import encode_definition
from punie.domain.tools.discovery import BUILT_IN_TOOLS
from punie.domain.tools.metadata import Capability, Permission, ToolMetadata
from punie.domain.tools.tool import ToolDescriptor


def descriptors(kind: type = BuiltInTool) -> Iterator[ToolDescriptor]:
    """Those of every class of ours."""
    assert assemble_tools.AssembleTools, "which imports them all"
    for child in kind.__subclasses__():
        found = child.__dict__.get("DESCRIPTOR")
        if child.__module__.startswith("punie.") and isinstance(found, ToolDescriptor):
            yield found
        yield from descriptors(child)


TOOLS = {tool.name: tool for tool in descriptors()}


@pytest.mark.requirement("S2-01", "S2-38")
def test_every_built_in_tool_has_a_description_and_says_what_it_needs_and_does() -> None:
    assert set(BUILT_IN_TOOLS) <= TOOLS.keys()
    assert DETAILS.keys() <= TOOLS.keys()
    for name in BUILT_IN_TOOLS:
        assert TOOLS[name].description
        assert TOOLS[name].details.required_permissions is not Permission.NONE, name


@pytest.mark.requirement("S2-45")
@pytest.mark.parametrize("name", sorted(DETAILS))
def test_its_examples_fit_its_schema(name: str) -> None:
    for example in TOOLS[name].details.examples:
        assert JsonSchemaRsValidator().problems(TOOLS[name].parameters, example.arguments) == ()
        assert example.description


@pytest.mark.requirement("S2-43")
def test_what_runs_unasked_says_that_it_changes_no_file() -> None:
    for name in UNASKED_BUILT_INS & DETAILS.keys():
        assert Permission.WRITE not in TOOLS[name].details.required_permissions, name
    for name in ("write_file", "edit_file", "git_add_commit"):
        assert Permission.WRITE in TOOLS[name].details.required_permissions


@pytest.mark.requirement("S2-42")
def test_what_runs_programs_needs_a_terminal() -> None:
    for name in ("run_command", "kill_terminal", "get_terminal_output"):
        assert Capability.TERMINAL in TOOLS[name].details.required_capabilities


def test_none_of_it_reaches_a_model() -> None:
    for tool in TOOLS.values():
        assert encode_definition(tool) == encode_definition(evolve(tool, details=ToolMetadata()))
        assert encode_definition(tool).keys() == {"name", "description", "inputSchema"}
