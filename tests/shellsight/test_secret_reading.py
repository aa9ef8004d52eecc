"""Reading secrets, in whatever spelling, is never safe."""

from __future__ import annotations

import pytest

from shellsight.report import Effect, Standing
from tests.shellsight.shell_lines import report, standing

SECRETS = [
    *(
        ".env",
        "./.env",
        ".env.local",
        "config/.env",
        "src/../.env",
        "'.env'",
        ".e''nv",
        ".ENV",
        "~/.ssh/id_rsa",
        '"$HOME"/.ssh/id_rsa',
    ),
    *(
        "/etc/shadow",
        "/proc/self/environ",
        "/proc/1/environ",
        "~/.aws/credentials",
        "~/.netrc",
        "~/.bash_history",
        "server.key",
        "x.pem",
    ),
    *(
        "~/.config/gh/hosts.yml",
        "/run/secrets/db",
        "~/.mozilla/firefox/a/logins.json",
        "~/.kube/config",
        "terraform.tfstate",
        ".git/config",
    ),
]


@pytest.mark.parametrize("path", SECRETS)
@pytest.mark.parametrize(
    "reader",
    [
        "cat",
        "head -1",
        "tail",
        "grep .",
        "sed -n p",
        "awk 1",
        "base64",
        "xxd",
        "strings",
        "sort",
        "diff x",
        "less",
        "cat <",
        "jq .",
    ],
)
def test_a_secret_is_read_by_no_program_unasked(reader: str, path: str) -> None:
    assert standing(f"{reader} {path}") >= Standing.DANGEROUS
    assert Effect.SECRETS in {effect for part in report(f"{reader} {path}").parts for effect in part.effects}


@pytest.mark.parametrize(
    "pattern",
    ["*", ".*", ".e*", ".en?", ".[e]nv", "*.pem", "*.key", "*/.env", "~/.s*/id_rsa", "id_*", "{.env,x}", "?env"],
)
def test_a_pattern_that_could_match_a_secret_is_not_safe_for_a_reader(pattern: str) -> None:
    assert standing(f"cat {pattern}") > Standing.ORDINARY


@pytest.mark.parametrize("pattern", ["*.py", "src/*.ts", "README*", "docs/*/index.md", "*.c"])
def test_a_pattern_that_cannot_is_safe(pattern: str) -> None:
    assert standing(f"cat {pattern}") is Standing.SAFE


@pytest.mark.parametrize(
    "line",
    [
        *(
            "env",
            "printenv",
            "set",
            "export",
            "export -p",
            "declare -p",
            "printenv API_KEY",
            "echo $API_KEY",
            'echo "${TOKEN}"',
        ),
        *(
            "cat <<< $DB_PASSWORD",
            "ls $SECRET",
            "echo ${!x}",
            "echo ${x@P}",
            "ps eww",
            "jq -n env",
            "jq -n '$ENV'",
            "awk 'BEGIN{print ENVIRON[\"A\"]}'",
        ),
        *(
            "git config --list",
            "git show HEAD:.env",
            "git diff .env",
            "git log -p -- .env",
            "grep -r x ~",
            "grep -r x /",
            "rg x ~",
            "grep -rh . ~/.config",
        ),
        *(
            "grep -r --include=.env . .",
            "rg -g '.env' .",
            "find . -name .env | xargs cat",
            "echo .env | xargs cat",
            "find . -type f | xargs cat",
        ),
        *(
            "ls -a | grep env | xargs cat",
            "cat $(find . -name .env)",
            "f=.env; cat $f",
            "for f in .e*; do cat $f; done",
            "while read f; do cat $f; done",
        ),
        *(
            "cp .env x",
            "tar czf x.tgz ~/.ssh",
            "git add -f .env",
            "sort --files0-from=.env",
            "find . -name '*.pem' -exec cat {} +",
        ),
    ],
)
def test_other_ways_to_a_secret_are_not_safe(line: str) -> None:
    assert standing(line) > Standing.ORDINARY


def test_an_example_of_a_secret_file_is_none() -> None:
    assert standing("cat .env.example") is Standing.SAFE


def test_whether_a_secret_is_there_may_be_asked() -> None:
    assert standing("[ -f .env ] && echo yes") is Standing.SAFE
    assert standing("ls -la .env") is Standing.SAFE


@pytest.mark.parametrize(
    "line",
    [
        *("git grep --untracked --no-exclude-standard x", "git grep --no-exclude-standard x", "git grep --no-index x"),
        *(
            'git grep --untracked ""',
            "git grep --untracked .",
            "git grep --untracked -i password",
            "git grep --untr ''",
        ),
        *("ag -u ''", "ag --hidden password", "ag -U api_key", "ag -a .", "ack .", "ack secret_", "rg -uu ''"),
        *("rg --hidden password", "rg --no-ignore .", "grep -r '' .", "grep -rn password ."),
    ],
)
def test_a_walk_that_goes_beyond_what_git_keeps_shows_no_secrets_unasked(line: str) -> None:
    assert standing(line) >= Standing.UNKNOWN


@pytest.mark.parametrize(
    "line",
    ["git grep --untracked main", "ag --hidden main", "ack main", "rg -u main", "ag password", "git grep -n main"],
)
def test_a_walk_for_a_plain_word_only_looks(line: str) -> None:
    assert standing(line) is Standing.SAFE
