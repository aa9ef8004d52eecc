"""What makes a SKILL.md a skill (the open Agent Skills format), and how the model is told of it."""

from __future__ import annotations

import pytest

from punie.domain.session.prompt_files import LINES_CHARS, BrokenSkillError, Skill, skill_lines, skill_of


def made(head: str, body: str = "Do it.") -> tuple[str, str]:
    skill = skill_of("/s", f"---\n{head}\n---\n{body}").skill
    return skill.name, skill.description


@pytest.mark.parametrize(
    ("head", "description"),
    [
        ("name: a-b\ndescription: Plain words: with a colon", "Plain words: with a colon"),
        ('name: a-b\ndescription: "In \\"quotes\\" # all of it"', 'In "quotes" # all of it'),
        ("name: a-b\ndescription: 'It''s one'", "It's one"),
        ("name: a-b # the name\ndescription: Words # a remark", "Words"),
        ("description: >-\n  Two lines\n  are one\nname: a-b", "Two lines are one"),
        ("description: |\n  Two\n  lines\nname: a-b", "Two\nlines"),
        ("name: a-b\ndescription: It goes on\n  below\nlicense: MIT", "It goes on below"),
        ("name: a-b\nmetadata:\n  description: not this\n  name: nor-this\ndescription: This", "This"),
        ("name: a-b\nallowed-tools: Bash(git:*)\ndescription: This\ncompatibility:", "This"),
    ],
)
def test_the_head_is_read_as_yaml_is_as_far_as_the_format_needs(head: str, description: str) -> None:
    assert made(head) == ("a-b", description)


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_the_body_is_what_follows_the_head(ending: str) -> None:
    text = ending.join(("\ufeff---", "name: a", "description: b", "---", "", "# How", "", "---", "more", ""))
    assert skill_of("/s", text).body == "# How\n\n---\nmore"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "head"),
        ("# Just text", "head"),
        ("---\nname: a\ndescription: b\n", "head"),
        ("---\ndescription: b\n---\n", "name"),
        ("---\nname: A b\ndescription: b\n---\n", "name"),
        ("---\nname: a--b\ndescription: b\n---\n", "name"),
        ("---\nname: -a\ndescription: b\n---\n", "name"),
        (f"---\nname: {'a' * 65}\ndescription: b\n---\n", "name"),
        ("---\nname: a\n---\n", "description"),
        ("---\nname: a\ndescription:\n---\n", "description"),
        (f"---\nname: a\ndescription: {'b' * 1025}\n---\n", "description"),
    ],
)
def test_a_broken_one_says_what_is_wrong(text: str, why: str) -> None:
    with pytest.raises(BrokenSkillError, match=why):
        skill_of("/s", text)


def test_each_skill_is_one_line_and_all_lines_have_a_bound() -> None:
    assert skill_lines([Skill("a", "Two\nlines\x1b[0m", "/a"), Skill("b", "c", "/b")]).count("\n") == 1
    many = skill_lines([Skill(f"skill-{number}", "words " * 150, "/a") for number in range(200)])
    assert 0 < len(many) <= LINES_CHARS
    assert max(len(line) for line in many.splitlines()) < 330
