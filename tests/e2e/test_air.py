"""What a client of JetBrains is sent beside ACP, over real pipes; and that no other client is sent any of it."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.ide_parts import Json
from tests.e2e.raw_client import RawClient, RpcError, capabilities
from tests.e2e.scripts import call, fail, text, usage
from tests.e2e.test_mcp_sessions import ECHO, entry

pytestmark = pytest.mark.anyio

ALL = ["diffPatch", "agentFileChangeReport", "sessionFailure", "asyncTasks", "recommendedValue", "planContentDelta"]
OF_JETBRAINS = ("jetbrains", "is_mcp_tool", "quota", "authStatus", "terminal_info", "terminal_exit", "output_delta")
ANYTHING = re.compile(r"[0-9a-f]{8,}|[0-9]+(\.[0-9]+)?(e-[0-9]+)?|script-\w+")


def air(*wants: str, **more: Any) -> Json:
    """The capabilities of Air without files or terminals of its own, so that this machine serves the tools."""
    return {"_meta": {"jetbrains": {"air": {"version": 1, "capabilities": list(wants)}}, **more}}


def below(meta: Json) -> Json:
    """The payload of the extension."""
    assert meta["jetbrains"]["air"]["version"] == 1
    return meta["jetbrains"]["air"]


def agent_says(ide: RawClient) -> list[str]:
    """The agent's lines, less what differs from one run to the next: names, numbers, looks at a running command."""
    lines = [frame.raw.decode() for frame in ide.log.frames if frame.sender == "agent"]
    return [ANYTHING.sub("#", line) for line in lines if "tool_call_update" not in line or '"status"' in line]


def journey(project: Path) -> list[list[Json]]:
    """Two turns with everything that Air is sent more of."""
    python = (
        "import os, time; print('one'.upper(), flush=True)\n"
        "while not os.path.exists('seen'): time.sleep(0.02)\nprint('two'.upper()); os.remove('seen')"
    )
    return [
        [
            call("write_file", path=str(project / "my new.txt"), content="a\nb"),
            call("edit_file", path=str(project / "notes.txt"), old_text="two", new_text="2"),
            call("run_command", command="python3", args=["-c", python]),
            usage(12, 3),
            text("done"),
        ],
        [fail("rate_limit", "slow down")],
    ]


async def told(ide: RawClient, project: Path) -> tuple[str, Any, Any]:
    """Both turns of the journey: the session, the answer to `session/new` and that to the first prompt."""
    ide.person.will(*["allow_once"] * 9)
    opened = await ide.request("session/new", {"cwd": str(project), "mcpServers": []})
    session = opened["sessionId"]
    request = {"jetbrains": {"air": {"agentFileChangeReportRequest": {"version": 1, "requestId": "r-1"}}}}
    prompt = [{"type": "text", "text": "go on"}]
    asked = await ide.start("session/prompt", {"sessionId": session, "prompt": prompt, "_meta": request})
    await ide.until(lambda: "ONE\\n" in json.dumps(ide.log.updates(session)), "the command's first line")
    (project / "seen").touch()
    return session, opened, await asked.result()


async def test_air_gets_patches_reports_marks_and_tokens(spawn: Spawn, project: Path):
    async with spawn(*journey(project), caps=air(*ALL, terminal_output_delta=True)) as ide:
        answer = await ide.initialize()
        offered = below(answer["_meta"])["capabilities"]
        assert set(offered) == {*ALL, "nativeSubagentSessions"} - {"planContentDelta"}
        assert answer["agentCapabilities"]["_meta"]["authStatus"] == {}
        assert answer["_meta"]["steering"] == {"supported": True}
        session, opened, first = await told(ide, project)
        (auth,) = [frame.params["authStatus"] for frame in ide.log.from_agent("_auth/status_update")]
        assert auth["kind"] == "external"

        options = {option["id"]: option for option in opened["configOptions"]}
        recommended = below(options["model"]["_meta"])["recommendedValue"]
        assert recommended in [value["value"] for value in options["model"]["options"]]
        assert "_meta" not in options["mode"]

        count = first["_meta"]["quota"]["token_count"]
        assert (count["totalTokens"], count["inputTokens"], count["outputTokens"]) == (15, 12, 3)
        assert first["_meta"]["quota"]["model_usage"][0]["token_count"] == count
        assert first["_meta"]["punie.dev"]["usage"]["inputTokens"] == 12

        updates = ide.log.updates(session)
        (report,) = [below(u["_meta"])["agentFileChangeReport"] for u in updates if "agentFileChange" in str(u)]
        assert (report["requestId"], report["status"], report["declaredComplete"]) == ("r-1", "reported", False)
        assert set(report["paths"]) == {str(project / "my new.txt"), str(project / "notes.txt")}

        cards: dict[str, list[Json]] = {}
        for update in (update for update in updates if "toolCallId" in update):
            cards.setdefault(update["toolCallId"], []).append(update)
        written, edited, ran = cards.values()
        patch_is_told(written, project / "my new.txt", new=True)
        patch_is_told(edited, project / "notes.txt", new=False)
        output_is_told_once(ran, str(project))
        by_tool = {q["_meta"]["punie.dev"]["tool"]: q for q in ide.person.questions}
        (diff,) = [item for item in by_tool["edit_file"]["toolCall"]["content"] if item["type"] == "diff"]
        assert "diffPatch" in below(diff["_meta"])
        assert "is_mcp_tool_approval" not in by_tool["edit_file"]["_meta"]

        second = await (await ide.start_prompt(session)).result()
        failure = below(second["_meta"])["sessionFailure"]
        assert second["stopReason"] == "end_turn"
        assert (failure["category"], failure["severity"], failure["actions"]) == ("limit", "error", ["retry"])
        assert "slow down" in failure["title"]


def patch_is_told(card: list[Json], path: Path, *, new: bool) -> None:
    """The card's diff is one git patch with prefixes, and the texts are placeholders."""
    diffs = [item for update in card for item in update.get("content") or () if item["type"] == "diff"]
    assert diffs
    for diff in diffs:
        assert (diff["path"], diff["oldText"], diff["newText"]) == (str(path), None, "")
        patch = below(diff["_meta"])["diffPatch"]
        assert (patch["version"], patch["format"]) == (1, "git_patch")
        bare, tab = str(path).lstrip("/"), "\t" if " " in str(path) else ""
        lines = patch["text"].split("\n")
        assert lines[0] == f"diff --git a/{bare} b/{bare}"
        assert ("new file mode 100644" in lines) is new
        assert ("--- /dev/null" if new else f"--- a/{bare}{tab}") in lines
        assert f"+++ b/{bare}{tab}" in lines
        if new:
            assert lines[-4:] == ["+a", "+b", "\\ No newline at end of file", ""]
        else:
            assert {"-two", "+2", " one"} <= set(lines)


def output_is_told_once(card: list[Json], folder: str) -> None:
    """The card is a terminal of its own, to which the output is appended."""
    metas = [update.get("_meta") or {} for update in card]
    (info,) = [meta["terminal_info"] for meta in metas if "terminal_info" in meta]
    call_id = card[0]["toolCallId"]
    assert info == {"terminal_id": call_id, "cwd": folder}
    data = [meta["terminal_output_delta"] for meta in metas if "terminal_output_delta" in meta]
    assert "".join(piece["data"] for piece in data) == "ONE\nTWO\n"
    assert len(data) > 1
    (ended,) = [meta["terminal_exit"] for meta in metas if "terminal_exit" in meta]
    assert ended == {"terminal_id": call_id, "exit_code": 0, "signal": None}
    shown = [item for update in card for item in update.get("content") or ()]
    assert shown == [{"type": "terminal", "terminalId": call_id}]
    assert "output" not in card[-1]["rawOutput"]


async def test_no_other_client_is_sent_a_byte_of_it(spawn: Spawn, project: Path):
    spoken: list[list[str]] = []
    malformed = {"jetbrains": {"air": {"version": 0, "capabilities": ALL}}, "terminal_output_delta": "yes"}
    for caps in ({}, {"_meta": malformed}):
        (project / "my new.txt").unlink(missing_ok=True)
        (project / "notes.txt").write_text("one\ntwo\nthree\n", "utf-8")
        async with spawn(*journey(project), caps=caps) as ide:
            await ide.initialize()
            session, _, _ = await told(ide, project)
            with pytest.raises(RpcError, match="slow down"):
                await (await ide.start_prompt(session)).result()
            spoken.append(agent_says(ide))
    assert spoken[0] == spoken[1]
    assert not [line for line in spoken[0] for key in OF_JETBRAINS if key in line]


async def test_each_capability_is_its_own_switch(spawn: Spawn, project: Path):
    async with spawn(*journey(project), caps=air("somethingNew")) as ide:
        await ide.initialize()
        session, opened, first = await told(ide, project)
        assert "jetbrains" not in json.dumps(opened)
        assert "quota" in first["_meta"]
        with pytest.raises(RpcError, match="slow down"):
            await (await ide.start_prompt(session)).result()
        assert not [line for line in agent_says(ide)[1:] if any(key in line for key in ("jetbrains", "terminal_"))]


async def test_a_client_that_only_appends_output_gets_only_that(spawn: Spawn, project: Path):
    async with spawn(*journey(project), caps={"_meta": {"terminal_output_delta": True}}) as ide:
        answer = await ide.initialize()
        assert "_meta" not in answer
        session, _, first = await told(ide, project)
        assert "quota" not in first["_meta"]
        ran = [u for u in ide.log.updates(session) if "terminal_" in str(u.get("_meta"))]
        assert len(ran) > 1
        assert not [line for line in agent_says(ide) if "jetbrains" in line]


async def test_calls_of_servers_tools_are_marked(spawn: Spawn, project: Path, tmp_path: Path):
    turns = [[call("search_tools", query="echo text")], [call(ECHO, text="hi"), call("list_files", path=".")]]
    async with spawn(*turns, caps=air()) as ide:
        ide.person.will("allow_once")
        await ide.initialize()
        session = await ide.new_session(project, mcpServers=[entry(tmp_path / "served")])
        await ide.prompt(session)
        echoed, listed = (await ide.prompt(session)).cards
        assert all(update["_meta"]["is_mcp_tool_call"] is True for update in echoed.updates)
        assert not any("_meta" in update for update in listed.updates)
        (question,) = ide.person.questions
        assert question["_meta"]["is_mcp_tool_approval"] is True


@pytest.mark.parametrize("kept", [{}, capabilities(terminal=True)], ids=["here", "client"])
async def test_a_program_in_the_background_is_marked(spawn: Spawn, project: Path, kept: Json):
    turn = [call("run_command", command="sleep 5", background=True)]
    async with spawn(turn, caps=kept | air("asyncTasks", "agentFileChangeReport")) as ide:
        ide.person.will("allow_once")
        card = (await ide.prompt(await ide.open(project))).card
        assert card.status == "completed"
        assert below(card.updates[-1]["_meta"])["asyncTasks"] == {"backgrounded": True}


async def test_a_loaded_session_has_patches_too(spawn: Spawn, project: Path):
    turn = [call("edit_file", path=str(project / "notes.txt"), old_text="two", new_text="2")]
    async with spawn(turn, caps=air("diffPatch")) as ide:
        ide.person.will("allow_once")
        session = await ide.open(project)
        await ide.prompt(session)
        mark = len(ide.log.frames)
        await ide.request("session/load", {"sessionId": session, "cwd": str(project), "mcpServers": []})
        again = [u for u in ide.log.updates(session, after=mark) if u["sessionUpdate"] == "tool_call_update"]
        assert [u for u in again if "git_patch" in str(u.get("content"))]
