"""OpenTelemetry: spans of a real turn at a real collector on loopback, and a turn that none of it can harm."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("opentelemetry.exporter.otlp.proto.http", reason="SKIPPED LOUDLY: punie[otel] is not installed")

from tests.architecture.source_tree import ROOT
from tests.e2e.raw_client import clean_environment, run_cli
from tests.e2e.scripts import RESULT, call, text, thought, usage, write
from tests.otlp_receiver import Receiver, attributes_of, points_of

SERVER = ROOT / "tests" / "fakes" / "mcp_servers" / "stdlib_server.py"
SECRET = "the-secret-of-the-house"


def turn(tmp_path: Path, **environ: str) -> subprocess.CompletedProcess[str]:
    (tmp_path / "a.txt").write_text(f"{SECRET}\n")
    script = [
        *(thought(SECRET), text(f"I read {SECRET}."), usage(120, 34)),
        *(call("read_file", path="a.txt"), call("run_command", command=f"touch {SECRET}"), usage(200, 6)),
    ]
    model = write(tmp_path / "script.json", script)
    env = clean_environment(tmp_path / "home", **environ)
    return run_cli("ask", "--json", "--model", model, f"Read {SECRET}", env=env, cwd=tmp_path)


def test_a_turn_with_its_requests_calls_and_questions_is_seen_by_a_collector(tmp_path: Path):
    with Receiver() as receiver:
        done = turn(
            tmp_path,
            OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint,
            OTEL_SERVICE_NAME="my-agents",
            OTEL_RESOURCE_ATTRIBUTES="team=blue",
        )
    assert done.returncode == 3, done.stderr
    session_id = json.loads(done.stdout.splitlines()[0])["sessionId"]
    assert set(receiver.paths) == {"/v1/traces", "/v1/logs", "/v1/metrics"}
    assert SECRET not in str(receiver.metrics)
    assert session_id not in str(receiver.metrics)
    assert sum(count for _, count in points_of(receiver, "gen_ai.client.operation.duration")) == 2
    assert sorted(
        (about["gen_ai.tool.name"], about.get("error.type"))
        for about, _ in points_of(receiver, "gen_ai.execute_tool.duration")
    ) == [("read_file", None), ("run_command", "denied")]
    verdicts = [
        (about["punie.permission.verdict"], n) for about, n in points_of(receiver, "punie.permission.decisions")
    ]
    assert sorted(verdicts) == [("allow", 1), ("deny", 1)]
    ((ended, turns),) = points_of(receiver, "gen_ai.invoke_agent.duration")
    assert (ended["punie.turn.stop_reason"], turns) == ("end_turn", 1)
    assert len(receiver.logs) == 2, "a record for each decision"
    assert SECRET not in str(receiver.logs)
    assert (receiver.resource["service.name"], receiver.resource["team"]) == ("my-agents", "blue")

    (root,) = receiver.named("invoke_agent punie")
    about = attributes_of(root)
    assert about["gen_ai.operation.name"] == "invoke_agent"
    assert about["gen_ai.conversation.id"] == session_id
    assert (about["gen_ai.usage.input_tokens"], about["gen_ai.usage.output_tokens"]) == (320, 40)
    assert about["punie.turn.stop_reason"] == "end_turn"
    assert root.parent_span_id == b""

    chats = [span for span in receiver.spans if span.name.startswith("chat ")]
    assert [attributes_of(span)["gen_ai.usage.input_tokens"] for span in chats] == [120, 200]
    read, run = receiver.named("execute_tool read_file")[0], receiver.named("execute_tool run_command")[0]
    assert attributes_of(read)["punie.tool.outcome"] == "succeeded"
    assert attributes_of(run)["error.type"] == "denied"
    assert run.status.code == 2
    (asked,) = receiver.named("ask_permission")
    assert attributes_of(asked)["punie.permission.verdict"] == "deny"
    assert asked.parent_span_id == run.span_id
    for span in (*chats, read, run):
        assert (span.parent_span_id, span.trace_id) == (root.span_id, root.trace_id)
        assert root.start_time_unix_nano <= span.start_time_unix_nano <= span.end_time_unix_nano
        assert span.end_time_unix_nano <= root.end_time_unix_nano
    assert SECRET not in str(receiver.spans), "what was said is nobody's business unless asked for"


def test_what_was_said_goes_along_where_it_is_asked_for(tmp_path: Path):
    with Receiver() as receiver:
        turn(
            tmp_path,
            OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"{receiver.endpoint}/elsewhere",
            OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT="true",
        )
    assert set(receiver.paths) == {"/elsewhere"}
    assert receiver.resource["service.name"] == "punie"
    (root,) = receiver.named("invoke_agent punie")
    (prompted,) = json.loads(attributes_of(root)["gen_ai.input.messages"])
    assert prompted == {"role": "user", "parts": [{"type": "text", "content": f"Read {SECRET}"}]}
    (read,) = receiver.named("execute_tool read_file")
    assert json.loads(attributes_of(read)["gen_ai.tool.call.arguments"]) == {"path": "a.txt"}
    assert SECRET in attributes_of(read)["gen_ai.tool.call.result"]
    first = next(span for span in receiver.spans if span.name.startswith("chat "))
    assert SECRET in attributes_of(first)["gen_ai.output.messages"]


def test_a_server_is_told_which_span_its_call_belongs_to_and_nothing_where_there_are_none(tmp_path: Path):
    echo = call("helper__echo", text="$meta:traceparent")
    model = write(tmp_path / "script.json", [call("search_tools", query="echo text"), echo, RESULT])
    words = ("ask", "--model", model, "--allow", "helper__echo", "go")
    env = clean_environment(tmp_path / "home")
    server = {"command": sys.executable, "args": [str(SERVER), "--notes", str(tmp_path / "notes")]}
    (tmp_path / "home" / "punie" / "mcp.json").write_text(json.dumps({"mcpServers": {"helper": server}}))
    assert run_cli(*words, env=env, cwd=tmp_path).stdout == "nothing\n"
    with Receiver() as receiver:
        done = run_cli(*words, env={**env, "OTEL_EXPORTER_OTLP_ENDPOINT": receiver.endpoint}, cwd=tmp_path)
    (span,) = receiver.named("execute_tool helper__echo")
    assert done.stdout.startswith(f"00-{span.trace_id.hex()}-{span.span_id.hex()}-")


@pytest.mark.parametrize("status", [404, 500, None], ids=["404", "500", "dead"])
def test_a_collector_that_refuses_or_is_dead_harms_no_turn(status: int | None, tmp_path: Path):
    with ExitStack() as alive:
        receiver = alive.enter_context(Receiver(status=status or 200))
        if status is None:
            alive.close()
        done = turn(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint)
    assert set(receiver.paths) == (set() if status is None else {"/v1/traces", "/v1/logs", "/v1/metrics"})
    assert done.returncode == 3
    assert json.loads(done.stdout.splitlines()[-1])["stopReason"] == "end_turn"
    assert "Traceback" not in done.stderr
    assert done.stderr.count("WARNING punie: telemetry") <= 1


def test_a_collector_that_never_answers_harms_no_turn_and_holds_up_no_end(tmp_path: Path):
    with Receiver(hold=threading.Event()) as receiver:
        done = turn(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=receiver.endpoint, OTEL_EXPORTER_OTLP_TIMEOUT="3600")
        assert receiver.hold is not None
        assert not receiver.hold.is_set(), "it ended while the collector still held its breath"
    assert done.returncode == 3
    assert json.loads(done.stdout.splitlines()[-1])["stopReason"] == "end_turn"
    assert "Traceback" not in done.stderr
