"""`punie sessions replay`, as the command that a person types: what it says, and that nothing is run."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e import scripts
from tests.e2e.raw_client import agent_command, clean_environment, run_cli
from tests.e2e.scripts import RESULT, call, parallel, text, usage
from tests.stub_openai import Call, Recorded, Reply, StubOpenAI

PROMPT = "Add a line to a.txt"


def punie(place: Path, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return run_cli(*words, env=clean_environment(place / "home", **env), cwd=place)


def replayed(place: Path, *words: str, **env: str) -> tuple[int, dict[str, Any]]:
    done = punie(place, "sessions", "replay", "last", "--json", *words, **env)
    assert done.stderr == ""
    return done.returncode, json.loads(done.stdout)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recorded session of two turns that read, changed a file, ran a command and were denied one."""
    place = tmp_path_factory.mktemp("replay")
    (place / "project").mkdir()
    (place / "project/a.txt").write_text("one\n", "utf-8")
    at_once = parallel(call("read_file", path="a.txt"), call("list_files"))
    work = [text("I look. "), at_once, usage(10, 3), call("write_file", path="a.txt", content="one\ntwo\n"), RESULT]
    more = [call("run_command", command="cat a.txt"), RESULT, call("run_command", command="git push"), text("No.")]
    model = scripts.write(place / "model.json", work, more)
    ask = ("ask", "--mode", "auto", "--model", model, "--cwd", str(place / "project"))
    assert punie(place, *ask, PROMPT).returncode == 0
    assert punie(place, *ask, "--continue", "And show it").returncode == 3
    # What a replay would run again, or see.
    (place / "project/a.txt").write_text("something else\n", "utf-8")
    return place


@pytest.mark.parametrize("model", [None, "model.json"], ids=["told again", "by its own model"])
def test_a_replay_gives_the_same_log_and_touches_no_file(place: Path, model: str | None) -> None:
    before = files(place / "project")
    code, told = replayed(place, *(() if model is None else ("--model", f"script:{place / model}")))
    assert (code, told["same"], told["whole"], told["divergence"], told["divergences"]) == (0, True, True, None, 0)
    assert (told["turns"], told["calls"], told["recordedCalls"]) == (2, 5, 5)
    assert told["log"] == {"equal": True, "entry": None, "sha256": told["recordedLog"]["sha256"]}
    assert files(place / "project") == before
    assert replayed(place, *(() if model is None else ("--model", f"script:{place / model}")))[1]["log"] == told["log"]


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_a_replay_opens_nothing_of_the_project_and_starts_nothing(place: Path) -> None:
    trace = place / "trace.txt"
    command = ["strace", "-f", "-qq", "-e", "trace=execve,open,openat,creat,unlink,unlinkat,rename,mkdir,connect"]
    done = subprocess.run(
        [*command, "-o", str(trace), *agent_command("sessions", "replay", "last")],
        env=clean_environment(place / "home"), cwd=place, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, "")
    lines = trace.read_text("utf-8", "replace").splitlines()
    assert len(lines) > 100, "it was traced"
    assert [line for line in lines if str(place / "project") in line] == []
    started = [line for line in lines if "execve(" in line and line.rstrip().endswith("= 0")]
    assert len(started) == 1, "only the command itself"
    assert [line for line in lines if "connect(" in line and "AF_INET" in line] == []


def test_the_first_divergence_is_shown_and_the_replay_ends_there(place: Path) -> None:
    other = [
        text("I look. "),
        call("read_file", path="a.txt"),
        call("write_file", path="a.txt", content="one\nthree\n"),
    ]
    model = scripts.write(place / "other.json", other, [text("x")])
    code, told = replayed(place, "--model", model)
    assert (code, told["same"], told["whole"], told["turns"], told["calls"]) == (1, False, False, 1, 1)
    assert told["divergence"] == {
        "what": "another tool", "turn": 1, "call": 2,
        "expected": {"tool": "list_files", "arguments": {}},
        "got": {"tool": "write_file", "arguments": {"path": "a.txt", "content": "one\nthree\n"}},
    }  # fmt: skip
    assert (told["words"]["places"], told["words"]["differ"]) == (1, 0)
    shown = punie(place, "sessions", "replay", "last", "--model", model).stdout
    assert "The replay went another way in turn 1, call 2: another tool." in shown
    assert '-  "tool": "list_files"' in shown
    assert "It ended in turn 1: the log does not say what follows." in shown


def test_a_changed_prompt_diverges_where_it_should_with_a_model_behind_http(place: Path) -> None:
    """The text that the model writes depends on the prompt."""

    def writes(request: Recorded) -> Reply:
        words = "one\ntwo\n" if PROMPT in str(request.messages) else "gone\n"
        return Reply(calls=[Call("write_file", {"path": "a.txt", "content": words})], text=["I write."])

    look = Reply(calls=[Call("read_file", {"path": "a.txt"}), Call("list_files", {})], text=["Looking."])
    show = Reply(calls=[Call("run_command", {"command": "cat a.txt"})])
    push = Reply(calls=[Call("run_command", {"command": "git push"})])
    steps = [look, writes, Reply(text=["Done."]), show, push, Reply(text=["Not allowed."])]
    with StubOpenAI(steps) as stub:
        code, told = replayed(place, "--model", "openai-chat:stub", **stub.environment())
        assert len(stub.requests) == 6
        offered = [tool["function"]["name"] for tool in stub.requests[0].body["tools"]]
        sent = json.dumps(stub.requests[3].body)
    assert (code, told["divergence"], told["whole"], told["requests"]) == (0, None, True, 6)
    assert told["words"]["differ"] == 5, "words of another model count as no divergence"
    assert {"read_file", "write_file", "run_command", "list_files"} <= set(offered)
    assert "something else" not in sent, "answers are the log's, not the disk's"
    assert "one" in sent

    with StubOpenAI(steps) as stub:
        more = ("--model", "openai-chat:stub", "--prompt", "Empty a.txt")
        code, told = replayed(place, *more, **stub.environment())
        assert "Empty a.txt" in json.dumps(stub.requests[0].body)
        assert PROMPT not in json.dumps(stub.requests[0].body)
        assert len(stub.requests) == 2
    assert code == 1
    first = told["divergence"]
    assert (first["what"], first["turn"], first["call"]) == ("other arguments", 1, 3)
    assert first["got"]["arguments"]["content"] == "gone\n"
    assert files(place / "project") == {str(place / "project/a.txt"): b"something else\n"}


def test_the_logs_own_model_answers_another_prompt_and_other_engines_are_asked_by_name(place: Path) -> None:
    assert replayed(place, "--prompt", "Other words")[1]["model"] == f"script:{place / 'model.json'}"
    done = punie(place, "sessions", "replay", "last", "--model", "openai-chat:x", "--engine", "nothing")
    assert done.returncode == 2
    assert "nothing" in done.stderr


def test_a_model_that_cannot_be_reached_is_an_error_of_its_own(place: Path) -> None:
    env = {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "OPENAI_API_KEY": "k"}
    done = punie(place, "sessions", "replay", "last", "--model", "openai-chat:stub", **env)
    assert (done.returncode, done.stdout) == (4, "")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda lines: [*lines[:2]], "no prompt was sent in this session"),
        (lambda lines: [*lines[:1], lines[1].replace('"cwd":"', '"cwd":"not/absolute'), *lines[2:]], "which directory"),
        (lambda lines: [*lines[:1], lines[1].replace('"cwd":"', '"cwd":"/nul\\u0000'), *lines[2:]], "no name that any"),
    ],
    ids=["empty", "a relative directory", "a directory with NUL"],
)
def test_a_damaged_log_is_refused_with_a_reason(place: Path, tmp_path: Path, change: Any, reason: str) -> None:
    lines = export(place)
    (tmp_path / "damaged.jsonl").write_text("\n".join(change(lines)) + "\n", "utf-8")
    assert punie(tmp_path, "sessions", "import", "damaged.jsonl").returncode == 0
    done = punie(tmp_path, "sessions", "replay", "last", "--model", f"script:{place / 'model.json'}")
    assert (done.returncode, done.stdout) == (1, "")
    assert reason in done.stderr
    assert "Traceback" not in done.stderr


def export(place: Path) -> list[str]:
    session = json.loads(punie(place, "sessions", "list", "--json").stdout)[0]["sessionId"]
    return punie(place, "sessions", "export", session).stdout.splitlines()


def test_an_unknown_session_is_named(place: Path) -> None:
    done = punie(place, "sessions", "replay", "sess_unknown")
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no session sess_unknown" in done.stderr
