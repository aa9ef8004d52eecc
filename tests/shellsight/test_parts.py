"""What a report says of each command: words, forms, paths, and whether a rule's prefix may speak for it."""

from __future__ import annotations

import pytest

from shellsight.analysis import analyse_argv
from shellsight.report import Effect, PathEffect, PathUse, Standing
from tests.shellsight.shell_lines import HERE, report, standing


def test_wrappers_are_off_the_words_and_in_the_forms() -> None:
    (part,) = report("sudo -u me env A=b git push origin").parts
    assert part.argv == ("git", "push", "origin")
    assert ("sudo", "-u", "me", "env", "A=b", "git", "push", "origin") in part.forms
    assert not part.literal
    assert Effect.PRIVILEGE in part.effects


def test_a_program_by_its_place_has_its_name_among_the_forms() -> None:
    (part,) = report("/usr/bin/git push").parts
    assert part.argv == ("/usr/bin/git", "push")
    assert ("git", "push") in part.forms


def test_options_before_a_subcommand_are_off_one_of_the_forms() -> None:
    (part,) = report("git -C src --no-pager push").parts
    assert ("git", "push") in part.forms


@pytest.mark.parametrize(
    "line",
    [
        "ruff check src",
        "ruff check 'a b'",
        "NO_COLOR=1 ruff check",
        "time ruff check",
        "cd src && ruff check",
        "ruff check src/*.py",
    ],
)
def test_words_that_are_certain_are_literal(line: str) -> None:
    assert report(line).parts[-1].literal


@pytest.mark.parametrize(
    "line",
    [
        "ruff check $x",
        "ruff check $(id)",
        "A=b ruff check",
        "env A=b ruff check",
        "xargs ruff check",
        "sh -c 'ruff check'",
        "cd /x && ruff check",
        "ruff check *",
    ],
)
def test_words_or_surroundings_that_are_not_are_not(line: str) -> None:
    assert not report(line).parts[-1].literal


@pytest.mark.parametrize(
    ("line", "brings"),
    [
        ("ruff @options.txt", True),
        ("ruff check src @options.txt", True),
        ("ruff check -- '@'options.txt", True),
        ("uv run pytest -q @options.txt", True),
        ("python -m mypy @options.txt", True),
        (".venv/bin/pytest -k @slow", True),  # pytest reads the file, whatever comes before
        ("javac -d build @options.txt", True),
        ("rustc @options.txt", True),
        ("ld -o x @options.txt", True),
        ("pytest @*", True),
        ("ruff check a@b.py", False),
        ("git show @", False),
        ("pnpm --filter @scope/name test", False),
        ("grep -rn @property src", False),
        ("playwright test --grep @smoke", False),
    ],
)
def test_a_file_of_further_arguments_brings_what_no_prefix_speaks_for(line: str, brings: bool) -> None:
    (part,) = report(line).parts
    asks = part.inline_code and part.standing > Standing.ORDINARY
    assert (asks or not part.literal) is brings


def test_a_variable_of_the_line_is_known() -> None:
    assert report("f=src/a.py; wc -l $f").parts[-1].argv == ("wc", "-l", "src/a.py")
    assert [part.argv for part in report("for f in a b; do cat $f; done").parts] == [("cat", "a"), ("cat", "b")]


def test_paths_are_absolute_and_say_what_is_done() -> None:
    found = report("cp src/a ~/b && cat < c > /tmp/d").paths
    assert PathUse("/repo/src/a", PathEffect.READ) in found
    assert PathUse("/home/me/b", PathEffect.WRITE) in found
    assert PathUse("/repo/c", PathEffect.READ) in found
    assert PathUse("/tmp/d", PathEffect.WRITE) in found


@pytest.mark.parametrize(
    "line", ["{ ls; } > ~/x", "(ls) > ~/x", "[[ a ]] > ~/x", "for f in a; do ls; done > ~/x", "> ~/x"]
)
def test_a_compound_commands_redirection_is_a_path_too(line: str) -> None:
    assert PathUse("/home/me/x", PathEffect.WRITE) in report(line).paths
    assert standing(line) >= Standing.ORDINARY


@pytest.mark.parametrize(
    "line",
    [
        *(
            "pytest -q",
            "make",
            "npm test",
            "cargo build",
            "mkdir a",
            "touch a",
            "cp a b",
            "mv a b",
            "sed -i s/a/b/ f",
            "git add a",
            "git commit -m x",
        ),
        *(
            "python x.py",
            "python -m pytest",
            "./run.sh",
            "ruff check --fix",
            "black .",
            "mypy src",
            "echo x > f",
            "uv run pytest",
            "go test ./...",
        ),
    ],
)
def test_a_developers_day_is_ordinary(line: str) -> None:
    assert standing(line) is Standing.ORDINARY


@pytest.mark.parametrize(
    "line",
    [
        *(
            "git push",
            "git reset --hard",
            "git clean -fd",
            "git checkout -- .",
            "git branch -D x",
            "git stash drop",
            "git config a.b c",
            "kill -9 1",
        ),
        *(
            "systemctl stop x",
            "crontab -r",
            "ssh h",
            "scp a h:",
            "curl x",
            "nc h 1",
            "pip install x",
            "npm publish",
            "apt install x",
            "docker run x",
        ),
        *(
            "kubectl delete pod x",
            "terraform apply",
            "sudo ls",
            "eval x",
            "xargs rm",
            "truncate -s0 f",
            "shred f",
            "source f",
            "vim -c q",
            "make deploy",
        ),
    ],
)
def test_what_reaches_far_is_dangerous(line: str) -> None:
    assert standing(line) is Standing.DANGEROUS


@pytest.mark.parametrize(
    "line",
    ["frobnicate", "ls --frob", "cat $x", "$x", "*", "f() { ls; }; f", "./../x", "ls ${x@P}", "head -c 5 $(cat names)"],
)
def test_what_is_not_known_is_unknown(line: str) -> None:
    assert standing(line) is Standing.UNKNOWN


def test_a_file_that_the_line_writes_itself_is_no_script_of_the_project() -> None:
    assert standing("sh x.sh") is Standing.ORDINARY
    assert standing("echo id > x.sh; sh x.sh") is Standing.DANGEROUS
    assert standing("printf id | tee x; ./x") is Standing.DANGEROUS


def test_what_another_program_lists_may_be_searched_and_shown_only_if_it_is_no_secret() -> None:
    assert standing("find . -name '*.py' | xargs cat") is Standing.SAFE
    assert standing("find . -type f | xargs grep x") is Standing.SAFE
    assert standing("find . -name '*.py' -exec head -1 {} +") is Standing.SAFE
    assert standing("find . -name '*rc' -exec cat {} +") is Standing.UNKNOWN
    assert standing("find . -name '*.py' | sed s/x/y/ | xargs cat") is Standing.UNKNOWN


def test_arguments_without_a_shell_are_taken_as_they_are() -> None:
    assert analyse_argv(("echo", "$(rm -rf ~)", "*", ";", "rm"), HERE).standing is Standing.SAFE
    assert analyse_argv(("rm", "-rf", "~"), HERE).standing is Standing.DANGEROUS
    assert analyse_argv(("rm", "-rf", "/"), HERE).standing is Standing.FORBIDDEN
    assert analyse_argv(("sh", "-c", "rm -rf ~"), HERE).standing is Standing.FORBIDDEN


def test_an_empty_line_is_not_understood() -> None:
    assert standing("") is Standing.UNKNOWN
