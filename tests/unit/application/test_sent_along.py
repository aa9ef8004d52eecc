"""What a bridged tool sends beside what the model gave, and what a person reads of its command (issue 5)."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_mock import MockerFixture

from punie.application.offer.bridged import BridgedTool
from punie.application.offer.profiles import NO_ROW, ToolRow
from punie.domain.tools.tool import ToolDescriptor, ToolSource
from punie.domain.values.content import Diff
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


# ------------------------------------------------------------ the difference of a question

EDIT: dict[str, Any] = {"path": {"type": "string"}, "old_text": {"type": "string"}, "new_text": {"type": "string"}}
PATCH = """*** Begin Patch
*** Update File: /p/a.py
@@
-one
+two
*** Delete File: /p/b.py
*** End Patch
"""


def editing(mocker: MockerFixture, row: ToolRow = NO_ROW, **properties: Any) -> BridgedTool:
    roles = {"path": "path:write", "old_text": "old_text", "new_text": "new_text", "patch": "patch"}
    named = {name: {**schema, "x-punie-role": roles[name]} for name, schema in properties.items() if name in roles}
    parameters = {"type": "object", "properties": {**properties, **named}}
    tool = ToolDescriptor("idea__edit", parameters=parameters, source=ToolSource.MCP)
    return BridgedTool(tool, mocker.Mock(), "s", mocker.Mock(), row=row)


def shown(tool: BridgedTool, arguments: dict[str, Any], texts: dict[str, str | None]) -> list[Diff]:
    return list(tool._diffs(freeze_object(arguments), {path: path for path in texts}, texts))


def test_an_edit_shows_what_it_makes_of_the_text(mocker: MockerFixture) -> None:
    edit = {"path": "/p/a.py", "old_text": "one", "new_text": "two"}
    tool = editing(mocker, **EDIT)
    assert shown(tool, edit, {"/p/a.py": "one one"})[0].new_text in {"two one", "two two"}
    assert shown(tool, edit, {"/p/a.py": "three"}) == []
    assert shown(tool, edit, {}) == []
    assert shown(tool, edit, {"/p/a.py": "one", "/p/b.py": "one"}) == [], "the text is in which of them?"
    assert shown(tool, {"path": "/p/a.py"}, {"/p/a.py": "one"}) == []
    rows = {"every": ToolRow(every="all"), "exact": ToolRow(exact="match")}
    first = editing(mocker, rows["every"], **EDIT)
    assert shown(first, {**edit, "all": False}, {"/p/a.py": "one one"})[0].new_text == "two one"
    loose = editing(mocker, rows["exact"], **EDIT)
    assert shown(loose, {**edit, "match": False}, {"/p/a.py": "one"}) == []


def test_a_patch_shows_its_files_or_nothing(mocker: MockerFixture) -> None:
    tool = editing(mocker, patch={"type": "string"})
    found = shown(tool, {"patch": PATCH}, {"/p/a.py": "one\n", "/p/b.py": "gone\n"})
    assert [(diff.path, diff.new_text) for diff in found] == [("/p/a.py", "two\n"), ("/p/b.py", "")]
    assert shown(tool, {"patch": PATCH}, {"/p/a.py": "one\n"}) == []
    assert shown(tool, {"patch": "no patch"}, {"/p/a.py": "one\n"}) == []
