"""run_code on a desk: every call of the program is a call like any other."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("pydantic_monty", reason="the extra `code` is not installed")

from punie.adapters.monty.sandbox import MontySandbox
from punie.application.tools.session.run_code import RunCode, ToolsInReach
from punie.bootstrap.session_pipelines import NO_MONTY, ComposedTools
from punie.bootstrap.settings.settings import Settings
from punie.domain.permission.decisions import Policy
from punie.domain.permission.rules import Mode
from punie.domain.session.events import ToolCallAnnounced
from punie.domain.session.session import SessionSpec
from punie.domain.tools.execution import CallLimits, Limits
from punie.domain.tools.tool import ToolResult
from punie.domain.values.json_value import thaw
from punie.mechanics.installation import install_line
from tests.fakes.client import FakeClient
from tests.unit.application.desk_bench import LOG, DeskBench, RecordingTool, call, desk_of, tool
from tests.unit.application.pipelines.pipeline_bench import composed, failing, giving

pytestmark = pytest.mark.anyio


async def bench(*tools: Any, **how: Any) -> DeskBench:
    code = RunCode(MontySandbox(), ToolsInReach({one.descriptor.name: one.descriptor for one in tools}))
    return await desk_of([*tools, code], **how)


async def run(desk: DeskBench, program: str) -> ToolResult:
    return await desk.turn().call(call("run_code", {"code": program}))


def schema(*names: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": "string"} for name in names}}


def placed(name: str, *names: str) -> RecordingTool:
    """A tool with these parameters."""
    return tool(name, schema=schema(*names), effect=giving(name, {"k": 1}).effect)


async def test_each_call_has_a_card_and_its_arguments_by_place_or_name() -> None:
    desk = await bench(placed("look", "path", "how"), giving("odd-name", text="odd"))
    result = await run(desk, "a = look('x', how='y')['k']\nprint(tool('odd-name', n=a))\na + 1")
    assert result.text == "odd\n2"
    assert thaw(result.structured) == {"value": 2, "printed": "odd\n", "calls": 2}
    sent = [(one.tool, thaw(one.raw_input)) for one in desk.events if isinstance(one, ToolCallAnnounced)]
    assert sent[1:] == [("look", {"path": "x", "how": "y"}), ("odd-name", {"n": 1})]
    assert len(desk.lives) == 3


async def test_the_program_asks_nobody_and_each_call_asks_for_itself() -> None:
    for mode in Mode:
        assert (await run(await bench(policy=Policy(mode)), "1 + 1")).text == "2"
    client = FakeClient()
    client.queue_permission_selected("allow_once")
    client.queue_permission_selected("reject")
    change = giving("change", asks=True)
    result = await run(await bench(change, client=client), "change()\nchange()\nchange()")
    assert [question.tool for question in client.questions] == ["change", "change"]
    assert len(change.ran) == 1
    assert "ended at line 2: RuntimeError: Permission denied to use change" in result.text
    assert "It had made 2 calls" in result.text


async def test_a_call_that_fails_may_be_caught() -> None:
    program = "try:\n    breaks()\nexcept RuntimeError as error:\n    print('caught', error)"
    assert (await run(await bench(failing("breaks", "Broken.")), program)).text == "caught Broken."


@pytest.mark.parametrize(
    ("program", "said"),
    [
        ("lok()", "no tool is named so; did you mean look?"),
        ("run_code(code='1')", "no tool is named so"),
        ("look('a', 'b', 'c')", "TypeError: look() takes 2 arguments, 3 were given"),
        ("look('a', path='b')", "TypeError: look() got 'path' twice"),
        ("look(1)", "Invalid arguments for look"),
        ("look(", "SyntaxError"),
    ],
)
async def test_what_is_wrong_with_a_call_is_told(program: str, said: str) -> None:
    assert said in (await run(await bench(placed("look", "path", "how")), program)).text


async def test_it_holds_no_place_that_its_own_calls_need_and_reaches_pipelines() -> None:
    pipeline = composed('[[steps]]\nid = "s"\ntool = "look"\n')
    desk = await bench(giving("look", text="seen"), pipeline, limits=Limits(CallLimits(concurrent_calls=1)))
    assert (await run(desk, "made_up()['output']")).text == "seen"


async def test_without_the_extra_it_is_not_offered_and_the_log_says_why(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    spec = SessionSpec("/nowhere")
    with_it = ComposedTools(spec, Settings({"tools.code_mode": True}), LOG)
    assert [tool.descriptor.name for tool in await with_it(())] == ["run_code"]
    assert await ComposedTools(spec, Settings(), LOG)(()) == ()
    monkeypatch.setattr("punie.bootstrap.session_pipelines.find_spec", lambda _name: None)
    without = ComposedTools(spec, Settings({"tools.code_mode": True}), LOG)
    assert await without(()) == await without(()) == ()
    assert [record.getMessage() for record in caplog.records] == [NO_MONTY % install_line("code")]
