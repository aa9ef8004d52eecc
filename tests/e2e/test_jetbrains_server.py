"""A JetBrains IDE's own server as such a client passes it: launcher, address, project, router, quirks (issue 5)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.jetbrains_ide import NAME, IdeServer
from tests.e2e.promptness import Stopwatch
from tests.e2e.raw_client import RawClient
from tests.e2e.scripts import RESULT, TOOLS, call
from tests.e2e.turns import Turn

pytestmark = pytest.mark.anyio

READ = f"{NAME}__get_file_text_by_path"
OPEN = f"{NAME}__get_all_open_file_paths"
ROUTER = f"{NAME}__execute_tool"
TERMINAL = f"{NAME}__execute_terminal_command"
FIND_READ = call("search_tools", query=READ)
READ_NOTES = call(READ, pathInProject="notes.txt")
NOTES = "one\ntwo\nthree\n"
WITH_SECRET = {"IJ_MCP_AUTH_TOKEN": "sesame"}
SLOW_S = 30.0


@pytest.fixture
def server(project: Path, tmp_path: Path) -> Iterator[IdeServer]:
    made = IdeServer(project, tmp_path / "notes")
    yield made
    made.stop()


async def session_with(ide: RawClient, cwd: Path, *entries: dict[str, Any]) -> str:
    await ide.initialize()
    return await ide.new_session(cwd, mcpServers=list(entries))


async def played(ide: RawClient, cwd: Path, entry: dict[str, Any]) -> Turn:
    ide.person.always("allow_once")
    return await ide.prompt(await session_with(ide, cwd, entry), timeout_s=SLOW_S)


async def test_a_launcher_that_ends_without_a_word_leaves_the_address_which_is_remembered(
    spawn_twins: Spawn, project: Path, server: IdeServer
) -> None:
    server.start("--token", "sesame")
    proxies = dict.fromkeys(("HTTP_PROXY", "http_proxy", "ALL_PROXY"), "http://127.0.0.1:9")
    again = [call(TERMINAL, command="kill -9 $PPID", executeInShell=True)], [READ_NOTES, RESULT]
    async with spawn_twins([FIND_READ, READ_NOTES, RESULT], *again, env=proxies) as ide:
        ide.person.always("allow_once")
        session = await session_with(ide, project, server.entry("nothing", **WITH_SECRET))
        assert (await ide.prompt(session, timeout_s=SLOW_S)).text.endswith(NOTES)
        assert (await ide.prompt(session, timeout_s=SLOW_S)).card.status == "failed"
        server.stop()
        server.start("--token", "sesame")
        assert (await ide.prompt(session, timeout_s=SLOW_S)).text == NOTES
        assert ide.errors().count("/sse is used") == 1
        assert "Its program closed the connection. It ended with exit code 0." in ide.errors()
        assert "sesame" not in ide.errors()
    assert (server.count("launched"), server.count("connected")) == (1, 2)
    assert server.said[1]["headers"]["IJ_MCP_AUTH_TOKEN"] == "sesame"


async def test_a_launcher_that_works_is_used_as_it_is(spawn_twins: Spawn, project: Path, server: IdeServer) -> None:
    server.start()
    async with spawn_twins([FIND_READ, READ_NOTES, RESULT]) as ide:
        assert (await played(ide, project, server.entry("work"))).text.endswith(NOTES)
        assert "/sse" not in ide.errors()
    assert (server.count("launched"), server.count("connected")) == (1, 0)


async def test_a_launcher_that_hangs_has_half_of_the_start_and_holds_up_no_session(
    spawn_twins: Spawn, project: Path, server: IdeServer
) -> None:
    server.start()
    entry = server.entry("hang") | {"punie": {"startup_timeout_s": 8}}
    async with spawn_twins([FIND_READ], [FIND_READ, READ_NOTES, RESULT]) as ide:
        ide.person.always("allow_once")
        await ide.initialize()
        opening = Stopwatch()
        session = await ide.new_session(project, mcpServers=[entry])
        assert opening.seconds() < 3.5
        await ide.prompt(session, timeout_s=SLOW_S)
        await server.listed()
        assert (await ide.prompt(session, timeout_s=SLOW_S)).text.endswith(NOTES)
        assert "did not answer within 4 s" in ide.errors()
    assert (server.count("launched"), server.count("connected")) == (1, 1)


async def test_where_neither_way_leads_there_both_reasons_are_told(
    spawn_twins: Spawn, project: Path, server: IdeServer
) -> None:
    server.start()
    async with spawn_twins([FIND_READ], [READ_NOTES, RESULT]) as ide:
        ide.person.always("allow_once")
        session = await session_with(ide, project, server.entry("nothing"))
        await ide.prompt(session, timeout_s=SLOW_S)
        server.stop()
        turn = await ide.prompt(session, timeout_s=SLOW_S)
        assert turn.card.status == "failed"
        assert "Its program closed the connection. It ended with exit code 0." in turn.text
        assert f"Its address http://127.0.0.1:{server.port}/sse cannot be" in turn.text


async def test_every_call_carries_the_project_and_the_model_need_not_know(
    spawn_twins: Spawn, project: Path, server: IdeServer
) -> None:
    server.start()
    new = call(f"{NAME}__create_new_file", pathInProject="new.txt")
    async with spawn_twins([FIND_READ], [TOOLS], [READ_NOTES, RESULT], [new]) as ide:
        ide.person.always("allow_once")
        session = await session_with(ide, project, server.entry("nothing"))
        await ide.prompt(session, timeout_s=SLOW_S)
        offered = {tool["name"]: tool for tool in json.loads((await ide.prompt(session)).text)}
        assert READ in offered
        assert "projectPath" not in json.dumps(offered)
        assert "pathInProject" in offered[READ]["inputSchema"]["properties"]
        await ide.prompt(session)
        sent = {"pathInProject": "notes.txt", "projectPath": str(project)}
        assert server.calls == [sent]
        assert ide.person.questions == [], "the IDE's own reads are believed"
        turn = await ide.prompt(session)
        assert turn.card.status == "completed"
        (question,) = ide.person.questions
        assert question["toolCall"]["rawInput"] == {"pathInProject": "new.txt", "projectPath": str(project)}
        assert f'projectPath: "{project}"' in json.dumps(question["toolCall"]["content"]).replace('\\"', '"')


async def test_the_project_that_the_ide_names_counts_where_the_session_is_a_part_of_it(
    spawn_twins: Spawn, project: Path, server: IdeServer
) -> None:
    server.start()
    named = {"IJ_MCP_SERVER_PROJECT_PATH": str(project)}
    async with spawn_twins([FIND_READ, READ_NOTES, RESULT]) as ide:
        assert (await played(ide, project / "src", server.entry("nothing", **named))).text.endswith(NOTES)
    assert server.calls[0]["projectPath"] == str(project)


async def test_what_was_listed_once_is_offered_in_the_next_session_with_its_new_secret(
    spawn_twins: Spawn, project: Path, server: IdeServer
) -> None:
    server.start()
    async with spawn_twins([FIND_READ]) as ide:
        await ide.prompt(await session_with(ide, project, server.entry("nothing", **WITH_SECRET)), timeout_s=SLOW_S)
    launched = server.count("launched")
    async with spawn_twins([TOOLS]) as ide:
        other = server.entry("nothing", IJ_MCP_AUTH_TOKEN="another")
        assert READ in (await ide.prompt(await session_with(ide, project, other))).text
    assert launched == 1


async def test_the_router_asks_for_each_command_anew_and_shows_it_whole(
    spawn_twins: Spawn, project: Path, server: IdeServer
) -> None:
    server.start("--router")
    reading = call(ROUTER, command="get_file_text_by_path --pathInProject notes.txt")
    writing = call(ROUTER, command="create_new_file --pathInProject new.txt --text 'made by the router'")
    find = call("search_tools", query="universal tool that executes any tool by a command")
    async with spawn_twins([find, TOOLS], [reading, RESULT], [reading, RESULT], [writing]) as ide:
        ide.person.will("allow_always", "allow_once")
        session = await session_with(ide, project, server.entry("nothing"))
        assert ROUTER in (await ide.prompt(session, timeout_s=SLOW_S)).text
        assert (await ide.prompt(session)).text == NOTES
        assert (await ide.prompt(session)).text == NOTES
        assert len(ide.person.questions) == 1, "exactly this command was allowed for the session"
        assert (await ide.prompt(session)).card.status == "completed"
        shown = [question["toolCall"] for question in ide.person.questions]
        assert [each["rawInput"]["command"] for each in shown] == [
            each["call"]["arguments"]["command"] for each in (reading, writing)
        ]
        assert all(each["rawInput"]["command"] in each["title"] and each["kind"] == "other" for each in shown)
    assert (project / "new.txt").read_text() == "made by the router"


async def test_a_rule_can_name_the_router(spawn_twins: Spawn, project: Path, server: IdeServer, tmp_path: Path) -> None:
    server.start("--router")
    settings = tmp_path / "home" / "punie" / "config.toml"
    settings.parent.mkdir(parents=True)
    settings.write_text(f'[[permissions.rules]]\ndecision = "deny"\ntool = "{ROUTER}"\nreason = "no back doors"\n')
    script = [call(ROUTER, command="get_repositories"), RESULT]
    async with spawn_twins(script) as ide:
        turn = await ide.prompt(await session_with(ide, project, server.entry("nothing")), timeout_s=SLOW_S)
        assert [card.status for card in turn.cards] == ["failed"]
        assert "no back doors" in turn.text
        assert ide.person.questions == []
    assert server.calls == []


async def test_saying_at_once_that_the_tools_changed_costs_one_more_listing_at_most(
    spawn_twins: Spawn, project: Path, server: IdeServer
) -> None:
    server.start()
    async with spawn_twins([FIND_READ], [FIND_READ, READ_NOTES], [FIND_READ, READ_NOTES, RESULT]) as ide:
        ide.person.always("allow_once")
        session = await session_with(ide, project, server.entry("nothing"))
        turns = [await ide.prompt(session, timeout_s=SLOW_S) for _ in range(3)]
        assert turns[-1].text.endswith(NOTES)
    assert server.count("notifications/initialized") == 1
    assert server.count("tools/list") <= 2


async def test_what_a_result_leaves_out_is_warned_of_once_a_tool(
    spawn_twins: Spawn, project: Path, server: IdeServer
) -> None:
    server.start()
    look = call(OPEN)
    async with spawn_twins([call("search_tools", query=OPEN)], [look, RESULT], [look, RESULT]) as ide:
        ide.person.always("allow_once")
        session = await session_with(ide, project, server.entry("nothing"))
        await ide.prompt(session, timeout_s=SLOW_S)
        first, second = await ide.prompt(session), await ide.prompt(session)
        assert "Warning: the structured result is not what the tool promises" in first.text
        assert json.loads(second.text) == {}


async def test_a_call_in_which_the_ide_goes_away_is_not_repeated_and_the_next_one_reconnects(
    spawn_twins: Spawn, project: Path, server: IdeServer
) -> None:
    server.start()
    dies = call(TERMINAL, command="echo x >> acted; kill -9 $PPID", executeInShell=True)
    async with spawn_twins([FIND_READ], [dies, RESULT], [READ_NOTES, RESULT]) as ide:
        ide.person.always("allow_once")
        session = await session_with(ide, project, server.entry("nothing"))
        await ide.prompt(session, timeout_s=SLOW_S)
        died = await ide.prompt(session, timeout_s=SLOW_S)
        assert died.card.status == "failed"
        assert "Whether the tool did its work is not known" in died.text
        server.stop()
        server.start()
        assert (await ide.prompt(session, timeout_s=SLOW_S)).text == NOTES
    assert (project / "acted").read_text() == "x\n"
