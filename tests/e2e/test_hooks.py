"""Hooks that were written for another agent run unchanged: over real pipes, with the user's `hooks.json`."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from landbox.box import held
from tests.e2e.conftest import Spawn
from tests.e2e.processes import gone, pid_in
from tests.e2e.raw_client import clean_environment, run_cli
from tests.e2e.scripts import RESULT, call, text

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(not shutil.which("bash"), reason="hooks are lines of bash")]

VALIDATOR = """#!/bin/bash
# Reads the call as JSON and refuses whatever removes trees.
input=$(cat)
line=$(printf '%s' "$input" | python3 -c 'import json,sys; print(json.load(sys.stdin)["tool_input"]["command"])')
if [[ "$line" =~ rm\\ -rf ]]; then
  echo "rm -rf is not for agents: $line" >&2
  exit 2
fi
exit 0
"""
CHECKER = """
import json, sys
try:
    given = json.load(sys.stdin)
except json.JSONDecodeError as error:
    sys.exit(1)
if given["tool_name"] != "Bash":
    sys.exit(0)
if given["tool_input"].get("command", "").startswith("grep "):
    print("use rg instead of grep", file=sys.stderr)
    sys.exit(2)
"""
FORMATTER = """
import json, pathlib, sys
given = json.load(sys.stdin)
path = pathlib.Path(given["tool_input"]["file_path"])
if path.suffix == ".py":
    path.write_text(path.read_text().replace("'", '"'))
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PostToolUse", "additionalContext": "quotes were made double"}}))
"""  # noqa: E501 - a script
PROTECTOR = """
import json, sys
given = json.load(sys.stdin)
if given["tool_input"].get("file_path", "").endswith(".lock"):
    print(json.dumps({"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny",
                      "permissionDecisionReason": "lock files are made by tools"}}))
"""
KEEPER = """
import json, sys
given = json.load(sys.stdin)
if "password" in given["prompt"]:
    print(json.dumps({"decision": "block", "reason": "no secrets in prompts"}))
else:
    print("The build is green.")
"""
STOPPER = """
import json, sys
given = json.load(sys.stdin)
if not given["stop_hook_active"]:
    print(json.dumps({"decision": "block", "reason": "run the tests first"}))
"""


def line(script: str) -> list[dict[str, Any]]:
    return [{"type": "command", "command": script}]


class Hooks:
    """The user's scripts and `hooks.json`, as their authors keep them."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.log = home / "log.txt"
        (home / "punie").mkdir(parents=True, exist_ok=True)
        for name, body in (
            ("validate.sh", VALIDATOR), ("check.py", CHECKER), ("format.py", FORMATTER), ("protect.py", PROTECTOR),
            ("keep.py", KEEPER), ("stop.py", STOPPER),
        ):  # fmt: skip
            (home / name).write_text(body)
            (home / name).chmod(0o755)

    def write(self, hooks: dict[str, Any], at: Path | None = None) -> Path:
        path = at or self.home / "punie/hooks.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"hooks": hooks}))
        return path


@pytest.fixture
def hooks(tmp_path: Path) -> Hooks:
    return Hooks(tmp_path / "home")


async def test_hooks_of_another_agent_run_unchanged(spawn: Spawn, project: Path, hooks: Hooks):
    home = hooks.home
    hooks.write({
        "PreToolUse": [
            {"matcher": "Bash", "hooks": [*line(f"{home}/validate.sh"), *line(f"python3 {home}/check.py")]},
            {"matcher": "Edit|Write", "hooks": line(f"python3 {home}/protect.py")},
            {"matcher": "", "hooks": line(
                f"""python3 -c 'import json,sys; d=json.load(sys.stdin); print(d["tool_name"])' >> {hooks.log}"""
            )},
        ],
        "PostToolUse": [{"matcher": "Edit|MultiEdit|Write", "hooks": line(f'python3 "{home}"/format.py')}],
        "SessionStart": [{"matcher": "startup", "hooks": line("echo This is sprint 12; cat >/dev/null")}],
        "UserPromptSubmit": [{"hooks": line(f"python3 {home}/keep.py")}],
        "Stop": [{"hooks": line(f"python3 {home}/stop.py")}],
        "SessionEnd": [{"hooks": line(f"echo ended >> {hooks.log}")}],
    })  # fmt: skip
    work = [
        call("run_command", command="rm -rf src"), call("run_command", command="grep one notes.txt"),
        call("write_file", path="uv.lock", content="x"), call("write_file", path="new.py", content="x = 'a'\n"),
        RESULT, call("edit_file", path="new.py", old_text='x = "a"', new_text="x = 'b'"), RESULT,
        call("run_command", command="echo fine"), text("done"),
    ]  # fmt: skip
    async with spawn(work, [text("tested")], [text("never said")], caps={}, args=("--mode", "auto")) as ide:
        session = await ide.open(project)
        first = await ide.prompt(session, "please work")
        second = await ide.prompt(session, "my password is x")
    told = [card.text for card in first.cards]
    assert "rm -rf is not for agents: rm -rf src" in told[0]
    assert "use rg instead of grep" in told[1]
    assert "lock files are made by tools" in told[2]
    assert [card.status for card in first.cards] == ["failed"] * 3 + ["completed"] * 3
    assert first.text.count("quotes were made double") == 2
    assert first.text.endswith("tested"), "the hook asked for more once"
    assert (project / "src").exists()
    assert not (project / "uv.lock").exists()
    assert (project / "new.py").read_text() == 'x = "b"\n'
    assert "no secrets in prompts" in second.text
    assert hooks.log.read_text().split() == ["Bash", "Bash", "Write", "Write", "Edit", "Bash", "ended"]

    def cli(*words: str) -> str:
        return run_cli(*words, env=clean_environment(home), cwd=project).stdout

    rows = [row for row in json.loads(cli("permissions", "audit", "--json")) if row["source"] == "hook"]
    assert {"hook:SessionStart", "hook:PreToolUse", "hook:Stop", "hook:SessionEnd"} <= {row["tool"] for row in rows}
    assert [row["verdict"] for row in rows if "validate.sh" in row["title"]].count("deny") == 1
    cli("trace", session, "--output", "trace.html")
    page = (project / "trace.html").read_text()
    assert "The hook PreToolUse" in page
    assert "lock files are made by tools" in page


async def test_the_hooks_of_a_project_run_once_they_are_trusted_and_until_a_script_changes(
    spawn: Spawn, project: Path, hooks: Hooks
):
    script = project / "check.sh"
    script.write_text("echo 'not this' >&2; exit 2\n")
    hooks.write({"PreToolUse": [{"hooks": line('sh "$CLAUDE_PROJECT_DIR"/check.sh')}]}, project / ".punie/hooks.json")

    async def told() -> str:
        work = [call("write_file", path="check.sh", content="exit 0"), call("run_command", command="echo ran")]
        async with spawn(work, caps={}, args=("--mode", "auto")) as ide:
            cards = (await ide.prompt(await ide.open(project))).cards
            return "\n".join(card.text for card in cards[1:])

    def cli(*words: str) -> str:
        done = run_cli(*words, env=clean_environment(hooks.home), cwd=project)
        return done.stdout + done.stderr

    assert "not this" not in await told(), "nobody trusts them yet"
    script.write_text("echo 'not this' >&2; exit 2\n")
    asked = cli("permissions", "trust", "--yes")
    assert 'sh "$CLAUDE_PROJECT_DIR"/check.sh' in asked
    assert "check.sh as it is now" in asked
    assert "not this" in await told()
    assert "1 in force" in cli("doctor", "--offline")
    script.write_text("exit 2\n")
    assert "until you trust them" in cli("doctor", "--offline")
    assert "trusted no longer" in cli("permissions", "trust", "--revoke")


async def test_a_hook_makes_a_decision_stricter_and_never_looser(spawn: Spawn, project: Path, hooks: Hooks):
    def says(decision: str, **more: Any) -> list[dict[str, Any]]:
        own = {"hookEventName": "PreToolUse", "permissionDecision": decision, **more}
        (hooks.home / f"{decision}.json").write_text(json.dumps({"hookSpecificOutput": own}))
        return line(f"cat {hooks.home}/{decision}.json")

    other = {"updatedInput": {"path": "b.txt", "file_path": "b.txt"}}
    hooks.write({"PreToolUse": [
        {"matcher": "Bash", "hooks": says("allow")}, {"matcher": "Read", "hooks": says("ask")},
        {"matcher": "Write", "hooks": says("defer", **other)},
    ]})  # fmt: skip
    work = [
        call("run_command", command="touch here"), call("read_file", path="notes.txt"),
        call("write_file", path="a.txt", content="a"), text("done"),
    ]  # fmt: skip
    async with spawn(work, caps={}) as ide:
        ide.person.always("reject_once")
        turn = await ide.prompt(await ide.open(project))
    assert [card.status for card in turn.cards] == ["failed"] * 3
    assert "user rejected" in turn.cards[0].text
    assert "user rejected" in turn.cards[1].text
    assert "Call again with" in turn.cards[2].text
    assert not (project / "here").exists()


async def test_hooks_that_fail_flood_hang_or_make_no_sense_break_nothing(spawn: Spawn, project: Path, hooks: Hooks):
    pid = hooks.home / "pid"
    hooks.write({"PreToolUse": [{"matcher": "run_command", "hooks": [
        *line("yes"), *line("exit 7"), *line("echo '{'"), *line("no-such-program"),
        *line("printf '\\377\\033[31m' >&2; exit 1"),
        {"type": "command", "command": f"sleep 600 & echo $! > {pid}; wait", "timeout": 0.3},
        {"type": "http", "url": "http://127.0.0.1:9"}, {"type": "command", "command": "exit 2", "if": "Bash(rm *)"},
    ]}], "Notification": [], "Stop": 3})  # fmt: skip
    async with spawn([call("run_command", command="echo ran"), RESULT], caps={}, args=("--mode", "auto")) as ide:
        turn = await ide.prompt(await ide.open(project))
    assert "ran" in turn.text
    await gone(int(pid.read_text()))


@pytest.mark.skipif(not held(), reason="this kernel has no Landlock")
async def test_a_boxed_hook_changes_the_sessions_directories_alone(spawn: Spawn, project: Path, hooks: Hooks):
    (hooks.home / "punie/config.toml").write_text("[hooks]\nbox = true\n")
    outside = hooks.home / "outside"
    tries = f"touch here; touch {outside} 2>&- && exit 2; echo ran >&2; exit 1"
    hooks.write({"PreToolUse": [{"matcher": "Bash", "hooks": line(tries)}]})
    async with spawn([call("run_command", command="echo one"), RESULT], caps={}, args=("--mode", "auto")) as ide:
        turn = await ide.prompt(await ide.open(project))
    assert "one" in turn.text
    assert (project / "here").exists()
    assert not outside.exists()
    rows = json.loads(run_cli("permissions", "audit", "--json", env=clean_environment(hooks.home), cwd=project).stdout)
    assert [row["reason"].count("ran") for row in rows if row["source"] == "hook"] == [1], [
        row["reason"] for row in rows
    ]


async def test_a_hook_ends_the_turn(spawn: Spawn, project: Path, hooks: Hooks):
    halt = json.dumps({"continue": False, "stopReason": "the budget is used up"})
    hooks.write({"PostToolUse": [{"matcher": "Bash", "hooks": line(f"echo '{halt}'")}]})
    work = [call("run_command", command="echo one"), call("run_command", command="touch two"), text("never")]
    async with spawn(work, [text("goes on")], caps={}, args=("--mode", "auto")) as ide:
        session = await ide.open(project)
        turn = await ide.prompt(session)
        assert (turn.stop, turn.text) == ("end_turn", "A hook ended the turn: the budget is used up")
        assert (await ide.prompt(session)).text == "goes on"
    assert not (project / "two").exists()


async def test_of_a_hook_nothing_is_left_when_punie_is_killed_or_the_turn_cancelled(
    spawn: Spawn, project: Path, hooks: Hooks
):
    pid = hooks.home / "pid"
    hooks.write({"UserPromptSubmit": [{"hooks": line(f"sleep 600 & echo $! > {pid}.new; mv {pid}.new {pid}; wait")}]})
    async with spawn([text("said")], caps={}, exits=None) as ide:
        session = await ide.open(project)
        prompt = await ide.start_prompt(session)
        first = await pid_in(pid)
        await ide.notify("session/cancel", {"sessionId": session})
        assert (await prompt.turn()).stop == "cancelled"
        await gone(first)
        pid.unlink()
        await ide.start_prompt(session)
        second = await pid_in(pid)
        ide.ended_early = True
        ide.process.kill()
        await gone(second)
