"""`make docs` sees a dead link, a heading that is gone, and a code block that does not parse."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import check_docs


def check(root: Path, text: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    """Check one page beside an empty `other.md` with the heading "A Part, in two words"."""
    (root / "other.md").write_text("# Other\n\n## A Part, in two words\n", encoding="utf-8")
    (root / "page.md").write_text(text, encoding="utf-8")
    code = check_docs.main(root)
    return code, capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("[gone](gone.md)", "page.md:1: the link gone.md leads to no file"),
        ("\n[part](other.md#no-such-part)", "page.md:2: the link other.md#no-such-part leads to no heading"),
        ("[here](#nowhere)", "page.md:1: the link #nowhere leads to no heading"),
        ("```python\nif:\n```", "page.md:2: the python block does not parse"),
        ("```json\n{'a': 1}\n```", "page.md:2: the json block does not parse"),
        ("1. first\n\n   ```toml\n   a = \n   ```", "page.md:4: the toml block does not parse"),
        ("```python\nx = 1\n", "page.md:1: the code block is never closed"),
    ],
)
def test_a_fault_is_named_with_its_place(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str, complaint: str
) -> None:
    code, errors = check(tmp_path, text, capsys)
    assert code == 1
    assert complaint in errors


@pytest.mark.parametrize(
    "text",
    [
        "[other](other.md), [part](other.md#a-part-in-two-words), [out](https://example.invalid), `[code](gone.md)`",
        "# Up\n[up](#up)",
        "```python\nasync with session:\n    await session.run()\n```",
        "```python\n>>> 1 + 1\n2\n```",
        "```console\n$ [not](a-link.md) {not json\n```",
        '1. first\n\n   ```json\n   {"a": 1}\n   ```',
        "````markdown\n```python\nif:\n```\n````",
    ],
)
def test_a_sound_page_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert check(tmp_path, text, capsys) == (0, "")
