"""The profile of a JetBrains IDE's own server over real pipes: columns, cards, diffs, results, one tool a purpose."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from punie.application.offer.profiles import Wins
from punie.bootstrap.tool_profiles import tool_profiles
from tests.architecture.source_tree import ROOT
from tests.e2e.conftest import Spawn
from tests.e2e.ide_parts import choose
from tests.e2e.jetbrains_ide import NAME, IdeServer, theirs
from tests.e2e.raw_client import RawClient, capabilities, clean_environment, run_cli
from tests.e2e.scripts import RESULT, TOOLS, call
from tests.e2e.turns import Turn

pytestmark = pytest.mark.anyio

FIND = [call("search_tools", query="nothing of that kind")]
SLOW_S = 30.0
BOTH = {"PUNIE_TOOLS_TWINS": "both"}
MODES = ("read-only", "ask", "accept-edits", "auto")
READS = ("ran", "ran", "ran", "ran")
EDITS = ("denied", "asked", "ran", "ran")
OTHERS = ("denied", "asked", "asked", "ran")
PATCH = "*** Begin Patch\n*** Update File: notes.txt\n@@\n one\n-two\n+zwei\n three\n*** End Patch"
TABLE: dict[str, tuple[dict[str, Any], tuple[str, ...], str, str]] = {
    "get_file_problems": ({"filePath": "src/app.py"}, READS, "read", "Problems in src/app.py"),
    "lint_files": ({"file_paths": ["src/app.py"]}, READS, "read", "Problems in src/app.py"),
    "build_project": ({}, OTHERS, "execute", "Building the project"),
    "get_project_modules": ({}, READS, "read", "Modules of the project"),
    "get_project_dependencies": ({}, READS, "read", "Dependencies of the project"),
    "get_symbol_info": ({"filePath": "notes.txt", "line": 1, "column": 1}, READS, "read", "Symbol in notes.txt"),
    "search_text": ({"q": "two"}, READS, "search", "Searching for 'two'"),
    "search_regex": ({"q": "t.o"}, READS, "search", "Searching for 't.o'"),
    "search_symbol": ({"q": "main"}, READS, "search", "Searching for the symbol 'main'"),
    "search_file": ({"q": "*.txt"}, READS, "search", "Files named '*.txt'"),
    "search_in_files_by_text": ({"searchText": "two"}, READS, "search", "Searching for 'two'"),
    "search_in_files_by_regex": ({"regexPattern": "t.o"}, READS, "search", "Searching for 't.o'"),
    "find_files_by_name_keyword": ({"nameKeyword": "app"}, READS, "search", "Files named 'app'"),
    "find_files_by_glob": ({"globPattern": "*.py"}, READS, "search", "Files named '*.py'"),
    "list_directory_tree": ({"directoryPath": "src"}, READS, "read", "Listing src"),
    "read_file": ({"file_path": "notes.txt", "start_line": 2}, READS, "read", "Reading notes.txt"),
    "get_file_text_by_path": ({"pathInProject": "notes.txt"}, READS, "read", "Reading notes.txt"),
    "open_file_in_editor": ({"filePath": "notes.txt"}, READS, "read", "Opening notes.txt in the editor"),
    "get_all_open_file_paths": ({}, READS, "read", "Open files"),
    "get_run_configurations": ({}, READS, "read", "Run configurations"),
    "get_repositories": ({}, READS, "read", "Repositories of the project"),
    "create_new_file": ({"pathInProject": "new.txt", "text": "made\n"}, EDITS, "edit", "Writing new.txt"),
    "replace_text_in_file": (
        {"pathInProject": "notes.txt", "oldText": "one", "newText": "one"}, EDITS, "edit", "Editing notes.txt"
    ),
    "apply_patch": ({"input": PATCH.replace("zwei", "two")}, EDITS, "edit", "Editing notes.txt"),
    "reformat_file": ({"path": "notes.txt"}, EDITS, "edit", "Reformatting notes.txt"),
    "rename_refactoring": (
        {"pathInProject": "src/app.py", "symbolName": "main", "newName": "start"}, OTHERS, "edit",
        "Renaming main to start wherever the project uses it",
    ),
    "execute_terminal_command": ({"command": "ls"}, OTHERS, "execute", "Running ls"),
    "execute_run_configuration": (
        {"configurationName": "app"}, ("denied", "asked", "asked", "asked"), "execute", "Running the configuration app"
    ),
}  # fmt: skip
"""Every tool of the server: arguments, the outcome in each mode, and the kind and title of the card."""


def lines_of_page() -> list[str]:
    """The lines of the page's table of tools: outcomes in each mode, the card, and which of two twins is offered."""
    (rows,) = (profile.tools for profile in tool_profiles() if profile.ide)
    first: dict[str, str] = {}
    for name, row in sorted(rows.items(), key=lambda item: item[1].place):
        first.setdefault(row.purpose or name, name)
    offered = {
        Wins.ALWAYS: "in place of",
        Wins.DISK: "without files of the client in place of",
        Wins.NEVER: "hidden by",
    }

    def twin(name: str) -> str:
        row = rows[name]
        if first[row.purpose or name] != name:
            return f"hidden by `{first[row.purpose]}`"
        return f"{offered[row.wins]} `{row.purpose}`" if " " not in row.purpose and row.purpose else ""

    return [
        f"| `{name}` | {' | '.join(modes)} | {kind}: {title.replace('|', ' ')} | {twin(name)} |".replace("  |", " |")
        for name, (_, modes, kind, title) in TABLE.items()
    ]


def test_the_page_has_the_same_table() -> None:
    _, _, table = (ROOT / "docs" / "in-the-ide.md").read_text("utf-8").partition("## Each tool by mode")
    assert [line for line in table.splitlines() if line.removeprefix("| `").split("`")[0] in TABLE] == lines_of_page()


@pytest.fixture
def server(project: Path, tmp_path: Path) -> Iterator[IdeServer]:
    made = IdeServer(project, tmp_path / "notes")
    made.start()
    yield made
    made.stop()


async def opened(ide: RawClient, cwd: Path, server: IdeServer) -> str:
    """A session whose first prompt has listed the server's tools."""
    await ide.initialize()
    session = await ide.new_session(cwd, mcpServers=[server.entry("nothing")])
    await ide.prompt(session, timeout_s=SLOW_S)
    await server.listed()
    await ide.prompt(session)
    return session


def outcomes(ide: RawClient, turn: Turn, asked_before: int) -> list[str]:
    asked = {question["toolCall"]["toolCallId"] for question in ide.person.questions[asked_before:]}
    ended = {"completed": "ran", "failed": "denied"}
    return ["asked" if card.call_id in asked else ended[card.status] for card in turn.cards]


async def test_each_tool_of_the_ide_is_what_it_does_in_every_mode(
    spawn: Spawn, project: Path, server: IdeServer, subtests: pytest.Subtests
) -> None:
    calls = [theirs(name, **arguments) for name, (arguments, *_) in TABLE.items()]
    async with spawn(FIND, FIND, *([calls] * len(MODES)), env=BOTH) as ide:
        ide.person.always("reject_once")
        session = await opened(ide, project, server)
        for place, mode in enumerate(MODES):
            await ide.request("session/set_mode", {"sessionId": session, "modeId": mode})
            asked = len(ide.person.questions)
            turn = await ide.prompt(session, timeout_s=SLOW_S)
            found = dict(zip(TABLE, outcomes(ide, turn, asked), strict=True))
            for (name, (_, expected, kind, title)), card in zip(TABLE.items(), turn.cards, strict=True):
                with subtests.test(mode=mode, tool=name):
                    assert (found[name], card.shown["kind"], card.shown["title"]) == (expected[place], kind, title)
    listed = {each["params"]["name"] for each in server.said if each["method"] == "tools/call"}
    assert listed == {name for name, (_, expected, *_) in TABLE.items() if "ran" in expected}


async def test_a_result_becomes_text_and_places_and_what_may_be_secret_is_left_out(
    spawn: Spawn, project: Path, server: IdeServer
) -> None:
    (project / ".env").write_text("two=1\n", "utf-8")
    looks = [
        theirs("search_in_files_by_text", searchText="two"),
        theirs("get_run_configurations"),
        theirs("execute_terminal_command", command="false"),
        theirs("find_files_by_glob", globPattern="*.nothing"),
    ]
    async with spawn(FIND, FIND, *([look, RESULT] for look in looks), env=BOTH) as ide:
        ide.person.always("allow_once")
        session = await opened(ide, project, server)
        found, configurations, ran, none = [await ide.prompt(session) for _ in looks]
    assert found.text == "notes.txt:2: ||two||\n[1 in files that may hold secrets are left out]"
    assert found.card.shown["locations"] == [{"path": str(project / "notes.txt"), "line": 2}]
    assert found.card.shown["rawOutput"]["entries"] == [
        {"filePath": "notes.txt", "lineNumber": 2, "lineText": "||two||"}
    ]
    assert configurations.text == "app: python src/app.py Python"
    assert "of the app" not in json.dumps(configurations.told), "variables may hold keys"
    assert ran.text == "[command_exit_code: 1]"
    assert none.text == "No files."


async def test_an_edit_is_shown_before_and_what_it_changed_after(
    spawn: Spawn, project: Path, server: IdeServer
) -> None:
    (project / "wide.txt").write_text("wide  \n", "utf-8")
    edits = [
        theirs("apply_patch", input=PATCH),
        theirs("replace_text_in_file", pathInProject="notes.txt", oldText="e", newText="E", replaceAll=False),
        theirs("reformat_file", path="wide.txt"),
        theirs("execute_run_configuration", configurationName="app"),
    ]
    async with spawn(FIND, FIND, edits, env=BOTH) as ide:
        ide.person.always("allow_once")
        turn = await ide.prompt(await opened(ide, project, server))
    diffs = [[item for item in each["toolCall"]["content"] if item["type"] == "diff"] for each in ide.person.questions]
    patched = {"type": "diff", "path": str(project / "notes.txt"), "oldText": "one\ntwo\nthree\n"}
    patched["newText"] = "one\nzwei\nthree\n"
    assert diffs[0] == [patched]
    assert turn.cards[0].content("diff") == [patched, patched], "before the question and at the end"
    assert [item["newText"] for item in diffs[1]] == ["onE\nzwei\nthree\n"]
    assert diffs[2] == []
    assert [item["newText"] for item in turn.cards[2].content("diff")] == ["wide\n"]
    assert "It runs python src/app.py in" in json.dumps(ide.person.questions[3]["toolCall"])


async def test_an_edit_is_told_of_the_problems_that_the_ide_finds_it_added(
    spawn: Spawn, project: Path, server: IdeServer
) -> None:
    (project / "src" / "broken.py").write_text("def old(:\n    pass\n", "utf-8")
    breaks = call("edit_file", path="src/app.py", old_text="return a + b", new_text="return a +")
    theirs_too = theirs("replace_text_in_file", pathInProject="src/broken.py", oldText="pass", newText="...")
    mended = call("edit_file", path="src/app.py", old_text="return a +", new_text="return a")
    looked = {**BOTH, "PUNIE_PERMISSIONS_MODE": "accept-edits"}
    async with spawn(FIND, FIND, *([edit, RESULT] for edit in (breaks, theirs_too, mended)), env=looked) as ide:
        session = await opened(ide, project, server)
        turns = [await ide.prompt(session) for _ in range(3)]
    head = f"\nFindings of {NAME}__get_file_problems that came (+) and went (-):\n"
    assert turns[0].text.endswith(f"(1 replaced){head}+ src/app.py: ERROR: invalid syntax")
    assert turns[1].text == "ok", "what was broken before is no news"
    assert turns[2].text.endswith(f"(1 replaced){head}- src/app.py: ERROR: invalid syntax")
    assert [len(turn.cards) for turn in turns] == [1, 1, 1], "the looks show no cards"
    looks = [one["params"] for one in server.said if one["method"] == "tools/call"]
    assert [one["arguments"]["errorsOnly"] for one in looks if one["name"] == "get_file_problems"] == [False] * 6
    assert ide.person.questions == []


async def test_a_changed_definition_of_a_tool_that_reads_is_asked_for(
    spawn: Spawn, project: Path, server: IdeServer
) -> None:
    read = theirs("get_file_text_by_path", pathInProject="notes.txt")
    dies = theirs("execute_terminal_command", command="kill -9 $PPID", executeInShell=True)
    async with spawn(FIND, FIND, [read], [dies], [read], env=BOTH) as ide:
        session = await opened(ide, project, server)
        assert (await ide.prompt(session)).card.status == "completed"
        ide.person.will(choose("allow_once"), "reject_once")
        await ide.prompt(session)
        server.stop()
        server.start("--reworded")
        assert (await ide.prompt(session)).card.status == "failed"
        assert "is not what it was when it was approved" in json.dumps(ide.person.questions[-1])


WHY = "searches the IDE's index and text that is not saved yet"
FILES = capabilities(read=True, write=True, terminal=True)
IDES = {"search_in_files_by_regex"}
UNSAVED = {"get_file_text_by_path", "create_new_file", "replace_text_in_file"}
SAME = {"search_text", "list_files", "read_file", "write_file", "edit_file", "run_command"}


@pytest.mark.parametrize(
    ("caps", "setting", "ides", "own"),
    [
        (FILES, "auto", IDES, SAME - {"search_text"}),
        (capabilities(), "auto", IDES | UNSAVED, {"list_files", "run_command"}),
        (FILES, "own", set[str](), SAME),
        (FILES, "ide", IDES | UNSAVED | {"list_directory_tree", "execute_terminal_command"}, set[str]()),
    ],
)
async def test_one_tool_a_purpose_is_offered(
    spawn: Spawn, project: Path, server: IdeServer, caps: Any, setting: str, ides: set[str], own: set[str]
) -> None:
    hidden = call(f"{NAME}__search_text", q="two")
    async with spawn(FIND, FIND, [TOOLS], [hidden, RESULT], caps=caps, env={"PUNIE_TOOLS_TWINS": setting}) as ide:
        session = await opened(ide, project, server)
        offered = {tool["name"] for tool in json.loads((await ide.prompt(session)).text)}
        assert {name for name in offered if name in SAME} == own
        purposes = IDES | UNSAVED | SAME | {"list_directory_tree", "execute_terminal_command", "lint_files"}
        theirs_ = {name.removeprefix(f"{NAME}__") for name in offered if name.startswith(NAME)}
        assert theirs_ & purposes == ides
        assert {"get_file_problems", "find_files_by_glob", "execute_run_configuration"} <= theirs_
        assert ("rename_refactoring" in theirs_) is (setting != "own"), "`code` renames as well"
        assert "is not offered in this session" in (await ide.prompt(session)).text


async def test_what_is_hidden_is_said_and_comes_back_while_the_ide_is_away(
    spawn: Spawn, project: Path, server: IdeServer
) -> None:
    search = theirs("search_in_files_by_regex", regexPattern="two")
    async with spawn(FIND, FIND, [search], [search], [TOOLS], caps=FILES) as ide:
        session = await opened(ide, project, server)
        listed = (await ide.prompt(session, "/tools")).text
        assert f"- `search_text`: {NAME}__search_in_files_by_regex does the same and {WHY}" in listed
        assert (await ide.prompt(session)).card.status == "completed"
        server.stop()
        assert (await ide.prompt(session, timeout_s=SLOW_S)).card.status == "failed"
        offered = [tool["name"] for tool in json.loads((await ide.prompt(session)).text)]
        assert "search_text" in offered
        assert f"{NAME}__search_in_files_by_regex" not in offered
    async with spawn(model="direct", caps=FILES) as ide:
        await ide.initialize()
        session = await ide.new_session(project, mcpServers=[server.entry("nothing")])
        said = (await ide.prompt(session, "/tools")).text
    assert f"- `search_text` : {NAME}__search_in_files_by_regex does the same and {WHY}" in said
    assert f"- `{NAME}__execute_terminal_command` : Punie's run_command does the same" in said


MINE = """
[[profile]]
servers = ["mine"]
shared = { projectPath = "cwd" }

[profile.tools.search_text]
does = "read"
title = "Looking for {query} in my way"
roles = { q = "query" }
result = { entries = "items", each = "{filePath}, line {startLine}", path = "filePath", line = "startLine" }

[profile.tools.replace_text_in_file]
does = "edit"
roles = { pathInProject = "path:write", oldText = "old_text", newText = "new_text" }
"""


async def test_a_row_of_the_users_own_holds_for_a_server_of_theirs_in_sessions_and_checks(
    spawn: Spawn, project: Path, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    env = clean_environment(home)
    (home / "punie" / "tool_profiles.toml").write_text(MINE, "utf-8")
    here, replaced = {"projectPath": str(project)}, {"pathInProject": "notes.txt", "oldText": "two", "newText": "2"}
    calls = [
        ("mine__search_text", {"q": "three", "limit": 5, **here}),
        ("mine__replace_text_in_file", {**replaced, **here}),
        ("mine__get_repositories", here),
    ]
    said = [call(name, **arguments) for name, arguments in calls]
    async with spawn([TOOLS], said, said, caps=FILES) as ide:
        ide.person.always("reject_once")
        await ide.initialize()
        entry = IdeServer(project, tmp_path / "notes").entry("work") | {"name": "mine", "env": []}
        session = await ide.new_session(project, mcpServers=[entry])
        assert "mine__search_text" in (await ide.prompt(session, timeout_s=SLOW_S)).text
        judged = {}
        for mode in ("read-only", "accept-edits"):
            await ide.request("session/set_mode", {"sessionId": session, "modeId": mode})
            asked = len(ide.person.questions)
            turn = await ide.prompt(session, timeout_s=SLOW_S)
            judged[mode] = outcomes(ide, turn, asked)
            assert turn.cards[0].shown["title"] == "Looking for three in my way"
            assert turn.cards[0].shown["locations"] == [{"path": str(project / "notes.txt"), "line": 3}]
    assert judged == {"read-only": ["ran", "denied", "denied"], "accept-edits": ["ran", "ran", "asked"]}
    assert (project / "notes.txt").read_text() == "one\n2\nthree\n"
    requests = [{"tool": name, "arguments": given, "cwd": str(project)} for name, given in calls]
    for mode, verdicts in {"read-only": "allow deny deny", "accept-edits": "allow allow ask"}.items():
        lines = "".join(json.dumps({**request, "mode": mode}) + "\n" for request in requests)
        checked = run_cli("permissions", "check", "--json", env=env, cwd=project, stdin=lines)
        assert [json.loads(line)["verdict"] for line in checked.stdout.splitlines()] == verdicts.split()
