"""Edits as models make them, over real pipes with a real HTTP model: patches of every form, and stale files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from landbox.box import held
from tests.e2e.conftest import Spawn
from tests.stub_openai import Call, Reply, StubOpenAI

pytestmark = pytest.mark.anyio

WHOLE = "def a():\n    x = 1\n    return x\n\n\ndef b():\n    x = 1\n    return x\n"


def patch(text: str, **more: str) -> Call:
    return Call("edit_file", {"patch": text, **more})


FORMS = [
    patch("@@ -1,9 +1,2 @@\n def a():\n-    x = 1\n+    x = 2\n     return x\n", path="a.py"),
    patch("@@ -1,1 +1,1 @@\n def a():\n-    x = 2\n+    x = 3\n     return x\n", path="a.py"),
    patch("--- a/a.py\n+++ b/a.py\n@@\n def a():\n-    x = 3\n+    x = 4\n"),
    patch("--- a/a.py\n+++ b/a.py\n@@ def a():\n-    x = 4\n+    x = 5\n"),
    patch("*** Begin Patch\n*** Update File: a.py\n@@ def a():\n-    x = 5\n+    x = 6\n*** End Patch\n"),
    patch("--- a/a.py\n+++ b/a.py\n@@ -1,3 +1,3 @@\n def a():  \n-    x = 6 \n+    x = 7\n     return x\n"),
    patch("*** Begin Patch\n*** Add File: b.py\n+b = 1\n*** Update File: a.py\n@@\n-    x = 7\n+    x = 8\n"),
    patch("*** Delete File: b.py\n*** Update File: a.py\n@@ def b():\n-    x = 1\n+    x = 9\n"),
]
STALE = [
    Call("read_file", {"path": "a.py"}),
    Call("run_command", {"command": "sed -i s/9/10/ a.py"}),
    Call("write_file", {"path": "a.py", "content": WHOLE}),
    Call("edit_file", {"path": "a.py", "edits": [
        {"old_text": "x = 1\n    return x\n\n", "new_text": "x = 2\n"}, {"old_text": "x = 2\n", "new_text": "x = 3\n"},
    ]}),
    Call("edit_file", {"path": "a.py", "old_text": "def c():", "new_text": "def d():"}),
]  # fmt: skip


@pytest.mark.parametrize("by_client", [True, False])
async def test_every_form_of_a_patch_applies_and_own_commands_make_nothing_stale(
    by_client: bool, spawn: Spawn, project: Path
):
    (project / "a.py").write_text(WHOLE, "utf-8")
    replies = [Reply(calls=[*FORMS, *STALE]), Reply(text=["done"])]
    with StubOpenAI(replies) as stub:
        how = {} if by_client else {"caps": {}}
        args = ("--mode", "auto")
        async with spawn(model="openai-chat:stub", env=stub.environment(), args=args, **how) as ide:
            turn = await ide.prompt(await ide.open(project), "go", timeout_s=30)
            told = [str(m["content"]) for m in stub.requests[-1].body["messages"] if m["role"] == "tool"]
    assert [card.status for card in turn.cards] == ["completed"] * 12 + ["failed"], told
    assert "nearest text is at line 1 " in told[-1]
    assert (project / "a.py").read_text("utf-8") == WHOLE.replace("x = 1\n    return x\n\n", "x = 3\n", 1)
    assert not (project / "b.py").exists()


def read(**arguments: object) -> Call:
    return Call("read_file", arguments)


def edits(path: str, *pairs: tuple[str, str]) -> Call:
    return Call("edit_file", {"path": path, "edits": [{"old_text": old, "new_text": new} for old, new in pairs]})


def search(text: str, **more: object) -> Call:
    return Call("search_text", {"text": text, **more})


def outline(path: str) -> Call:
    return Call("outline", {"path": path})


FOUND = "\nFindings of ruff that came (+) and went (-):\n+ src/app.py: F821 Undefined name `total`" if held() else ""
LONG = "".join(f"\tvalue_{number % 700} = {number % 90}\r\n" for number in range(6_600))
SEARCHES = [
    (search(r"def \w+\(", regex=True, context=1), "src/app.py:1: def add(a, b):\nsrc/app.py-2-     return a + b"),
    (search("return", files_only=True), "src/app.py\ntest_app.py"),
    (search("ad", whole_word=True), "No line contains 'ad'."),
    (search("ADD", ignore_case=True, whole_word=True, glob="s*/*.py"), "src/app.py:1: def add(a, b):"),
    (search("zzz", glob="*.rs"), "No line contains 'zzz'."),
    (search("(", regex=True), "unclosed group. Write it without"),
    (search("x", path="big.txt"), "too large or closed to us, so it was not searched. Try grep -an."),
]
READS = [
    (read(path="long.py"), "[lines 1-6600 of 6600; CRLF]\n1|\tvalue_0 = 0\n"),
    (read(path="long.py", ranges=["6599-9999", "3"]), "[lines 6599-6600, 3 of 6600; CRLF]\n6599|"),
    (read(path="notes.txt", line=99), "notes.txt has 3 lines; there is no line 99."),
    (read(path="notes.txt", ranges=["3-1"]), 'expected ranges of lines such as \\"1-80\\"'),
    (read(path="u16.txt"), "looks like text in UTF-16"),
    (read(path="big.txt"), "too large to read: 208000000 bytes"),
    (read(path="fifo"), "is a named pipe, so it was not read."),
    (read(path="src"), "is a folder, so it was not read. list_files shows"),
    (read(path="note.txt"), "does not exist. "),
    (outline("src/app.py"), "src/app.py\n  1-2 def add(a, b)"),
    (outline("."), "src/app.py\n  1-2 def add(a, b)\ntest_app.py\n  1-2 def test_good()"),
    (outline("notes.txt"), "has no outline"),
]
ODD_EDITS = [
    (edits("notes.txt", ("one", "1"), ("one", "2")), "edit 2 of 2: old_text does not occur in notes.txt as the edits"),
    (edits("notes.txt", ("one\ntwo", "1\n2"), ("two\nthree", "x")), "nearest text is at line 2 "),
    (edits("notes.txt", ("", "x")), "old_text is empty"),
    (edits("notes.txt", ("o", "x")), "occurs 2 times in notes.txt, at lines 1, 2."),
    (edits("mixed.txt", ("a\nb", "x")), "-a\\n+a\u240d"),
    (patch("@@\n-one\n@@\n-one\n", path="notes.txt"), "Hunk 2 of the patch fits only where another hunk"),
    (patch("--- a/../x\n+++ b/../x\n@@\n-one\n+1\n"), "outside the session's directories"),
    (patch("--- /dev/null\n+++ b/notes.txt\n@@ -0,0 +1 @@\n+x\n"), "exists already"),
    (edits("fifo", ("a", "b")), "is a named pipe"),
    (edits("bom.txt", ("a\nb", "1\n2")), "edited bom.txt (1 replaced)"),
    (
        patch("--- src\\app.py\n+++ src\\app.py\n@@\n-    return a + b\n+    return total\n"),
        "edited src/app.py (1 hunks)" + FOUND,
    ),
    (patch("rename from notes.txt\nrename to sub/moved.txt\n"), "notes.txt (moved), sub/moved.txt (created)"),
    (edits("long.py", ("\tvalue_400 = 40\n\tvalue_401 = 41", "\tx = 1\n\ty = 2")), "edited long.py (1 replaced)"),
    (Call("git_diff", {"path": "long.py"}), "-\tvalue_400 = 40\r\n-\tvalue_401 = 41\r\n+\tx = 1\r\n+\ty = 2\r\n"),
    (Call("python_tests", {"path": ["test_app.py::test_good", "test_app.py::test_bad"]}), "1 passed, 1 failed"),
    (Call("python_tests", {"k": "good"}), "1 passed"),
    (Call("run_command", {"command": "echo $0; echo ${BASH_VERSION:+bash}"}), "sh"),
]


def odd_files(project: Path) -> None:
    (project / "test_app.py").write_text(
        "def test_good():\n    return\n\n\ndef test_bad():\n    assert 1 == 2\n", "utf-8"
    )
    (project / "long.py").write_bytes(LONG.encode())
    (project / "mixed.txt").write_bytes(b"a\r\nb\nc\r\n")
    (project / "bom.txt").write_bytes(b"\xef\xbb\xbfa\r\nb\r\n")
    (project / "u16.txt").write_bytes("one\n".encode("utf-16"))
    with (project / "big.txt").open("wb") as big:
        big.truncate(208_000_000)
    os.mkfifo(project / "fifo")
    git = ["git", "-C", str(project), "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for words in (["init", "-q"], ["add", "long.py", "src"], ["commit", "-qm", "first"]):
        subprocess.run([*git, *words], check=True)


@pytest.mark.timeout(120)
async def test_what_models_ask_is_done_or_answered_with_what_happened_and_the_next_step(
    spawn: Spawn, project: Path, tmp_path: Path
):
    odd_files(project)
    (tmp_path / "rg").write_text("#!/bin/sh\nexit 2\n")
    (tmp_path / "rg").chmod(0o755)
    told: list[list[str]] = []
    for asked, path in (
        (SEARCHES, f"{tmp_path}:{os.environ['PATH']}"),
        (SEARCHES + READS + ODD_EDITS, os.environ["PATH"]),
    ):
        replies = [*(Reply(calls=[one]) for one, _ in asked), Reply(text=["done"])]
        with StubOpenAI(replies) as stub:
            env = {**stub.environment(), "PATH": path}
            async with spawn(model="openai-chat:stub", env=env, caps={}, args=("--mode", "auto")) as ide:
                ide.person.always("allow_once")
                await ide.prompt(await ide.open(project), "go", timeout_s=90)
        told.append([str(m["content"]) for m in stub.requests[-1].body["messages"] if m["role"] == "tool"])
        for (one, words), answer in zip(asked, told[-1], strict=True):
            assert words in answer, (one, answer[:2_000])
    assert told[1][: len(SEARCHES)] == told[0], "with ripgrep and without"
    assert max(map(len, told[1])) <= 25_000
    assert (project / "bom.txt").read_bytes() == b"\xef\xbb\xbf1\r\n2\r\n"
    assert (project / "sub/moved.txt").read_text() == "one\ntwo\nthree\n"
