"""A changed file as ACP v2 shows it: the patch gives the new text, and its paths are absolute."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from punie.adapters.acp.v2.updates import encode_diff, patch_of
from punie.application.tools.files.patch_reading import parse_patch
from punie.application.tools.files.patching import apply_hunks
from punie.domain.values.content import Diff
from punie.mechanics import line_diff

texts = st.lists(
    st.sampled_from(["a", "b", "", "c\r", "\x0b", "\u2028", "--- x", "+++ y", "@@ z"]), max_size=12
).flatmap(lambda lines: st.sampled_from(["\n".join(lines), "".join(f"{line}\n" for line in lines)]))


def apply_patch(text: str, patch: str) -> tuple[str, int]:
    (file,) = parse_patch(patch)
    return apply_hunks(text, file.hunks), len(file.hunks)


@given(texts, texts)
def test_the_patch_applied_to_the_old_text_gives_the_new_one(old: str, new: str) -> None:
    patch = patch_of(Diff("/p/a", old, new))
    if old == new:
        assert patch == "diff --git /p/a /p/a\n"
    else:
        assert apply_patch(old, patch) == (new, patch.count("\n@@ "))


@given(texts, texts)
def test_a_patch_too_large_to_work_out_replaces_the_whole(old: str, new: str) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(line_diff, "LINE_LIMIT", -1)
        text = patch_of(Diff("/p/a", old, new))
    if old or new:
        assert apply_patch(old, text)[0] == new


def test_a_new_file_is_added_and_an_old_one_modified() -> None:
    added = encode_diff(Diff("/p/new", None, "x\ny"))
    lines = [
        "diff --git /p/new /p/new", "new file mode 100644", "--- /dev/null", "+++ /p/new",
        "@@ -0,0 +1,2 @@", "+x", "+y", "\\ No newline at end of file", "",
    ]  # fmt: skip
    assert added == {
        "type": "diff",
        "changes": [{"operation": "add", "path": "/p/new", "fileType": "text"}],
        "patch": {"format": "git_patch", "text": "\n".join(lines)},
    }
    assert patch_of(Diff("/p/new", None, "")) == "diff --git /p/new /p/new\nnew file mode 100644\n"
    changed = encode_diff(Diff("/p/old", "a\n", "b\n"))
    assert changed["changes"] == [{"operation": "modify", "path": "/p/old", "fileType": "text"}]


@pytest.mark.parametrize(("path", "written"), [
    ("/p/a b", "/p/a b"), ('/p/"q"', '"/p/\\"q\\""'), ("/p/tab\t", '"/p/tab\\t"'), ("/p/\\x", '"/p/\\\\x"'),
    ("/p/ä", '"/p/\\303\\244"'), ("/p/\x01", '"/p/\\001"'), ("/p/line\nend", '"/p/line\\nend"'),
])  # fmt: skip
def test_paths_are_quoted_as_git_quotes_them(path: str, written: str) -> None:
    assert patch_of(Diff(path, "a\n", "b\n")).splitlines()[:3] == [
        f"diff --git {written} {written}",
        f"--- {written}",
        f"+++ {written}",
    ]
