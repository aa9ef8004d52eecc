"""A person sets up a model in a terminal that the client opens, and the agent that runs already uses it."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import acp
import anyio
import anyio.to_thread
import pytest

from tests.e2e.at_a_terminal import run_at_a_terminal
from tests.e2e.official_schema import OfficialSchema
from tests.e2e.raw_client import EVERYTHING, agent_command, clean_environment, run_cli
from tests.e2e.sdk_client import sdk_ide
from tests.stub_openai import Failure, Recorded, Reply, Step, StubOpenAI

KEY = "sk-the-right-one-4711"
ABLE = EVERYTHING | {"auth": {"terminal": True}}


def strict(request: Recorded) -> Step:
    """An answer for whoever has the key, else what a provider says."""
    if request.headers.get("authorization") != f"Bearer {KEY}":
        return Failure(401, "Incorrect API key provided")
    return Reply(text=["It ", "works."])


@pytest.mark.anyio
async def test_a_client_that_can_show_a_terminal_gets_its_user_a_model(
    tmp_path: Path, project: Path, schema: OfficialSchema | None
):
    env = clean_environment(tmp_path / "home", PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring")
    home = Path(env["PUNIE_HOME"])
    command = agent_command("acp")
    with StubOpenAI([strict] * 9) as stub, anyio.fail_after(120):
        env["OPENAI_BASE_URL"] = stub.base_url
        async with sdk_ide(command, env=env, cwd=project, schema=schema, capabilities=ABLE) as ide:
            said = await ide.agent.initialize(acp.PROTOCOL_VERSION, client_capabilities=ide.capabilities)
            (method,) = [method for method in said.auth_methods if getattr(method, "type", "") == "terminal"]
            at_first = (await ide.agent.new_session(cwd=str(project), mcp_servers=[])).session_id
            assert "`punie setup model` in a terminal" in (await ide.prompt(at_first, "hello")).text.splitlines()[0]

            (home / "config.toml").write_text('# mine\nmodel = "openai-chat:stub" # theirs\n')
            session = (await ide.agent.new_session(cwd=str(project), mcp_servers=[])).session_id
            with pytest.raises(acp.RequestError) as refused:
                await ide.prompt(session)
            assert refused.value.code == -32000
            assert "OPENAI_API_KEY" in str(refused.value)
            before = len(stub.requests)

            typed = [
                ("Provider [1]: ", "9"), ("Provider [1]: ", "1"), ("Key for", KEY), ("Model", "?"), ("Model", "stub"),
            ]  # fmt: skip
            code, screen = await anyio.to_thread.run_sync(
                lambda: run_at_a_terminal([*command, *method.args], typed, env=env, cwd=project)
            )
            assert code == 0, screen
            assert KEY not in screen, "what is typed for a key is not shown"
            assert "openai-chat:stub answers." in screen
            assert "  openai-chat:stub" in screen, "the provider's own list"

            assert (await ide.prompt(session)).text == "It works.", "the same session, asked again"
            other = (await ide.agent.new_session(cwd=str(project), mcp_servers=[])).session_id
            assert (await ide.prompt(other)).text == "It works."
            assert "It works." not in (await ide.prompt(at_first, "hello")).text, "it goes on as it began"
            assert KEY.encode() not in bytes(ide.stderr)
        assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in stub.requests[before:])
    assert (home / "config.toml").read_text() == '# mine\nmodel = "openai-chat:stub" # theirs\n'
    keeping = [path for path in home.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]
    assert [path.name for path in keeping] == ["credentials.json"]
    assert stat.S_IMODE(keeping[0].stat().st_mode) == 0o600


def test_a_script_sets_a_model_up_and_the_environments_key_is_the_stronger(tmp_path: Path, project: Path):
    env = clean_environment(tmp_path / "home", PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring")

    def cli(*args: str, **more: Any) -> Any:
        given = {**env, **more.pop("env", {})}
        return run_cli(*args, env=given, cwd=project, **more)

    with StubOpenAI([strict] * 9) as stub:
        setup = ("setup", "model", "--provider", "openai-chat", "--model", "stub", "--base-url", stub.base_url)
        done = cli(*setup, "--key-stdin", "--json", stdin=f"{KEY}\n")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["ok"] is True
        asked = cli("ask", "hello")
        assert (asked.returncode, asked.stdout.strip()) == (0, "It works."), asked.stderr
        other = cli("ask", "hello", env={"OPENAI_API_KEY": "sk-of-the-environment"})
        assert other.returncode == 0, "the maker's key is not for this server"
        assert all(request.headers["authorization"] == f"Bearer {KEY}" for request in stub.requests)
        asked = len(stub.requests)
        for model in ("openai:gpt-5", "openai-chat:gpt-5"):
            keyless = cli("ask", "--model", model, "hello")
            assert keyless.returncode == 4
            assert "OPENAI_API_KEY is not set" in keyless.stderr
        with StubOpenAI([strict] * 9) as maker:
            at_maker = {"OPENAI_API_KEY": "sk-of-the-environment", "OPENAI_BASE_URL": maker.base_url}
            assert cli("ask", "--model", "openai-chat:stub", "hello", env=at_maker).returncode == 4
            assert maker.requests[-1].headers["authorization"] == "Bearer sk-of-the-environment", (
                "which is the stronger"
            )
        assert len(stub.requests) == asked, "one's own server gets nothing that is for OpenAI"
