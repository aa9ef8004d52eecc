"""Ordinary forms that only look, and beside each the form next to it that does not."""

from __future__ import annotations

import pytest

from shellsight.report import PathEffect, PathUse, Standing
from tests.shellsight.shell_lines import report, standing


@pytest.mark.parametrize(
    "line",
    [
        'git log --author="$(git config user.name)" -5',
        'for b in main dev; do git log -1 --format="%ar $b" "$b"; done',
        "git grep -n foo $(git rev-parse HEAD)",
        "git diff --no-index a.txt src/b.txt",
        "git notes list",
        "git notes show HEAD",
        "git archive --list",
        "git cat-file --batch-check < ids.txt",
        "git rev-list --all | git cat-file --batch-check='%(objectsize)'",
        "git hash-object README.md",
        "git remote show -n origin",
        "git blame -L '/def foo/,+10' src/app.py",
        "GIT_OPTIONAL_LOCKS=0 git status",
        "grep -ril secret_key . --exclude-dir=.git",
        "grep -rnw . -e 'foo'",
        "grep -rn --include=*.py foo .",
        "grep -rn TODO --exclude-dir={.git,node_modules} .",
        "find -E . -regex '.*[.](py|toml)'",
        "ag --python 'def main'",
        "sed -n '/BEGIN/,/END/{/BEGIN/!{/END/!p}}' a.txt",
        "sed -n '/BEGIN/,/END/{//!p}' a.txt",
        "git ls-files '*.py' | xargs sed -n '1,5p'",
        "sort -t$'\\t' -k2 data.tsv",
        "cut -d $'\\t' -f1 data.tsv",
        'echo "${X:-default}" "${#PATH}" "${PWD##*/}"',
        "ps -p $$",
        "ps -u $USER",
        "top -l 1 | head",
        "pushd src && ls && popd",
        "tar --list --file=a.tar",
        "xargs -a list.txt ls -l",
        "export LC_ALL=C; sort a.txt",
    ],
)
def test_an_ordinary_form_that_only_looks_asks_nobody(line: str) -> None:
    assert standing(line) is Standing.SAFE


@pytest.mark.parametrize(
    "line",
    [
        "git log --author=$(cat words)",
        'git log --output="$f"',
        'git log "$x"',
        'git log "--$x=y"',
        "git show $(git rev-parse HEAD:.env)",
        "git show $(git rev-parse HEAD):.env",
        "git grep '' $(git rev-parse .env)",
        "git diff --no-index /dev/null .env",
        "git diff --no-index . ..",
        "git diff --no-index a.txt ../b.txt",
        "git diff --no-index --output=x a.txt b.txt",
        "git diff --no-index --ext-diff a.txt b.txt",
        "git notes add -m x",
        "git notes show --ref=x",
        "git archive HEAD",
        "git archive --list --exec=x",
        "git cat-file --batch < ids.txt",
        "git cat-file --batch-command < ids.txt",
        "git hash-object -w README.md",
        "git remote show origin",
        "git remote show -n --x",
        "git blame -S -L .env",
        "grep -rn '' . -e ''",
        "grep -rne '' . --exclude-dir=.git",
        "grep -rn --regexp= .",
        "grep -rn --include=*.pem foo .",
        "grep -rn --include={*.py,*.pem} foo .",
        "rg -uu -rl ''",
        "sed -n '/a/{/b/{w x'",
        "sed '/a/{/b/e}' a.txt",
        "sed -n '/a/{//r .env' a.txt",
        "echo ${x:0:y}",
        "echo ${API_TOKEN:-none}",
        "echo ${API_TOKEN##x}",
        "cat $'.env'",
        "cat $'\\x2eenv'",
        "find . $'-delete'",
        "$'ls'",
        "ps -p $$ e",
        "ps $X",
        "pushd +1; ls",
        "tar --list --file=host:a.tar",
        "tar --list --file=a.tar --to-command=x",
        "xargs -a .env echo",
        "xargs -a list.txt rm",
        "xargs -a list.txt cat",
        "ls | xargs -a list.txt cat",
        "xargs -a $f ls",
        "export PATH=/x; ls",
        "export LC_ALL",
        "export LC_ALL=C PATH=/x",
        "declare -x LC_ALL=C",
    ],
)
def test_the_form_next_to_it_asks(line: str) -> None:
    assert standing(line) > Standing.SAFE


def test_what_is_compared_or_listed_is_a_place_that_rules_hear_of() -> None:
    assert {use.path for use in report("git diff --no-index a.txt src/b.txt").parts[0].paths} >= {
        "/repo/a.txt",
        "/repo/src/b.txt",
    }
    assert PathUse("/repo/a.tar", PathEffect.READ) in report("tar --list --file=a.tar").parts[0].paths
    assert any(
        PathUse("/repo/list.txt", PathEffect.READ) in part.paths for part in report("xargs -a list.txt ls").parts
    )
