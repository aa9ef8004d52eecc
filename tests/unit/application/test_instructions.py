"""What the model is told before the conversation (INTERFACES.md section 4: AGENTS.md)."""

from __future__ import annotations

import pytest

from punie.application.turns.instructions import Instructions
from punie.domain.session.prompt_files import Skill
from tests.unit.application.doubles import MadeUpNotes, MadeUpShelf

pytestmark = pytest.mark.anyio


async def test_the_projects_notes_are_part_of_it_and_are_read_once() -> None:
    notes = MadeUpNotes("Use {braces} and tabs.\n```")
    instructions = Instructions("/project/{x}", notes)
    first = await instructions.text()
    notes.text = "changed"
    assert "/project/{x}" in first
    assert first.endswith("Use {braces} and tabs.\n```")
    assert await instructions.text() == first
    assert notes.reads == 1


async def test_nothing_is_read_before_the_first_prompt_and_no_notes_are_silent() -> None:
    notes = MadeUpNotes()
    instructions = Instructions("/project", notes)
    assert notes.reads == 0
    assert "AGENTS" not in await instructions.text()
    assert await instructions.text() == await instructions.text()
    assert notes.reads == 1


async def test_skills_are_listed_before_the_notes_a_line_each() -> None:
    shelf = MadeUpShelf((Skill("pdf-forms", "Fills in forms.", "/s"),))
    text = await Instructions("/project", MadeUpNotes("Use tabs."), shelf).text()
    assert "\n- pdf-forms: Fills in forms.\n" in text
    assert text.index("load_skill") < text.index("pdf-forms") < text.index("Use tabs.")


async def test_where_there_are_no_skills_nothing_is_said_of_them() -> None:
    assert "skill" not in await Instructions("/project", MadeUpNotes(), MadeUpShelf()).text()
