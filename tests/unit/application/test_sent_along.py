"""What a bridged tool sends beside what the model gave, and what a person reads of its command (issue 5)."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_mock import MockerFixture

from punie.application.offer.bridged import BridgedTool
from punie.domain.tools.tool import ToolDescriptor, ToolSource
from punie.domain.values.json_value import freeze_object

COMMAND = {"type": "object", "properties": {"command": {"type": "string"}}}


def bridged(mocker: MockerFixture, **along: str) -> BridgedTool:
    tool = ToolDescriptor("idea__execute_tool", parameters=COMMAND, source=ToolSource.MCP, title="Router")
    return BridgedTool(tool, mocker.Mock(), "s", mocker.Mock(), sent_along=freeze_object(along))


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ({"command": "x"}, {"command": "x", "projectPath": "/srv"}),
        ({"projectPath": "/else"}, {"projectPath": "/else"}),
        ({"projectPath": None}, {"projectPath": None}),
    ],
)
def test_what_is_missing_is_sent_along_and_what_is_given_is_not_touched(
    mocker: MockerFixture, given: dict[str, Any], sent: dict[str, Any]
) -> None:
    assert bridged(mocker, projectPath="/srv").sent(freeze_object(given)) == sent


def test_a_tool_without_such_arguments_sends_what_it_was_given(mocker: MockerFixture) -> None:
    given = freeze_object({"command": "x"})
    assert bridged(mocker).sent(given) is given


@pytest.mark.parametrize(
    ("arguments", "title"),
    [
        ({"command": "get_repositories"}, "Router: get_repositories"),
        ({"command": "a\nb"}, "Router: a b"),
        ({"command": 7}, "Router:"),
        ({}, "Router"),
    ],
)
def test_the_title_of_a_servers_command_shows_the_command(
    mocker: MockerFixture, arguments: dict[str, Any], title: str
) -> None:
    assert bridged(mocker).title(freeze_object(arguments)) == title
