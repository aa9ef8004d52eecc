"""Skills and instructions over the wire: listed in one line, loaded on demand (issue 6, deliver 6)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Spawn
from tests.e2e.raw_client import capabilities
from tests.e2e.scripts import RESULT, TOOLS, call
from tests.stub_openai import Reply, StubOpenAI

pytestmark = pytest.mark.anyio


@pytest.fixture
def skill(project: Path) -> Path:
    """A skill of the project's, with a file beside it."""
    folder = project / ".agents/skills/pdf-forms"
    folder.mkdir(parents=True)
    (folder / "SKILL.md").write_text(
        "---\nname: pdf-forms\ndescription: Fills in forms.\n---\nUse **qpdf**.\n", "utf-8"
    )
    (folder / "fields.md").write_text("the fields", "utf-8")
    return folder


@pytest.mark.parametrize("mode", ["read-only", "ask"])
async def test_a_skill_is_loaded_on_demand_and_nobody_is_asked(
    spawn: Spawn, project: Path, skill: Path, mode: str
) -> None:
    script = [call("load_skill", name="pdf-forms"), RESULT, call("read_file", path=str(skill / "fields.md")), RESULT]
    async with spawn([TOOLS], script, args=("--mode", mode), caps={}) as ide:
        session = await ide.open(project)
        assert "load_skill" in (await ide.prompt(session)).all_names
        turn = await ide.prompt(session)
        assert "Use **qpdf**." in turn.text
        assert f"- {skill}/fields.md" in turn.text
        assert "description:" not in turn.text.split("pdf-forms, in")[1]
        assert turn.text.endswith("the fields")
        assert [card.status for card in turn.cards] == ["completed", "completed"]
        assert turn.cards[0].shown["title"] == "Loading the skill pdf-forms"
        assert turn.cards[0].shown["kind"] == "read"
        assert ide.person.questions == []


async def test_a_name_that_is_none_is_told_with_those_there_are(spawn: Spawn, project: Path, skill: Path) -> None:
    assert skill.is_dir()
    async with spawn([call("load_skill", name="../../etc"), RESULT]) as ide:
        turn = await ide.prompt(await ide.open(project))
        assert turn.card.status == "failed"
        assert "The skills are: pdf-forms." in turn.text


async def test_without_skills_there_is_no_such_tool(spawn: Spawn, project: Path) -> None:
    async with spawn([TOOLS]) as ide:
        assert "load_skill" not in (await ide.prompt(await ide.open(project))).all_names


async def test_it_stands_beside_the_tools_of_an_ide_and_can_be_disabled(
    spawn: Spawn, project: Path, skill: Path
) -> None:
    assert skill.is_dir()
    caps = capabilities(read=True)
    async with spawn([TOOLS], caps=caps, env={"PUNIE_TOOLS_LOCAL": "never"}) as ide:
        assert "load_skill" in (await ide.prompt(await ide.open(project))).all_names
    async with spawn([TOOLS], env={"PUNIE_TOOLS_DISABLED": "load_skill"}) as ide:
        assert "load_skill" not in (await ide.prompt(await ide.open(project))).all_names


async def test_the_instructions_hold_a_line_a_skill_and_the_notes_above_the_project(
    spawn: Spawn, project: Path, skill: Path, tmp_path: Path
) -> None:
    own = tmp_path / "home/punie/skills/mine"
    own.mkdir(parents=True)
    (own / "SKILL.md").write_text("---\nname: mine\ndescription: What I like.\n---\nSecret sauce.\n", "utf-8")
    (project / ".agents/skills/broken").mkdir()
    (project / ".agents/skills/broken/SKILL.md").write_text("nothing", "utf-8")
    (project / ".git").mkdir()
    (project / "AGENTS.md").write_text("Of the top.", "utf-8")
    (project / "src/AGENTS.md").write_text("Of the sources.", "utf-8")
    (project / "src/.agents").symlink_to("../.agents")
    assert skill.is_dir()
    with StubOpenAI([Reply(text=["hello"]), Reply(text=["hello"])]) as stub:
        async with spawn(model="openai-chat:stub", env=stub.environment()) as ide:
            await ide.prompt(await ide.open(project), "hello", timeout_s=30)
            told = json.dumps(stub.requests[0].messages[0])
            assert "- mine: What I like." in told
            assert "- pdf-forms: Fills in forms." in told
            assert told.index("- mine") < told.index("- pdf-forms")
            assert "Secret sauce" not in told
            assert "qpdf" not in told
            assert "broken" in ide.errors()
            await ide.prompt(await ide.new_session(project / "src"), "hello")
            told = json.dumps(stub.requests[1].messages[0])
            assert told.index("Of the top.") < told.index("Of the sources.")
            assert "pdf-forms" not in told, "the link leads out of the session's directory"
