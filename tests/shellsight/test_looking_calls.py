"""Calls that only look, of programs that do far more, and how little it takes to make them ask."""

from __future__ import annotations

import pytest

from shellsight.report import PathEffect, PathUse, Standing
from tests.shellsight.shell_lines import report, standing


@pytest.mark.parametrize(
    "line",
    [
        *("tmux ls", "screen -ls", "snap list", "timedatectl", "mount", "stty size", "ldconfig -p", "last -5"),
        *("dpkg -l", "dpkg -L python3", "dpkg -S /usr/bin/env", "rpm -qa", "pacman -Q", "getent passwd root"),
        *("sysctl -n hw.ncpu", "sysctl kernel.hostname", "man 5 crontab", "man -k grep", "ip -br a"),
        *("npm run", "npm config get registry", "npm pkg get scripts", "npx --version", "uvx -V", "uv tool list"),
        *("kubectl config current-context", "helm version --short", "pyenv versions", "terraform fmt -check"),
        *("fzf --version", "nginx -v", "tar --version", "rsync --version", "code --list-extensions"),
    ],
)
def test_calls_that_are_known_word_for_word_only_look(line: str) -> None:
    assert standing(line) is Standing.SAFE


@pytest.mark.parametrize(
    "line",
    [
        *("tmux ls -F '#(id)'", "tmux ls ';' kill-server", "tmux -f x ls", "tmux new -d ls", "screen -ls -dm ls"),
        *("dpkg -i a.deb", "dpkg -l --pre-invoke=x", "dpkg -r x", "rpm -qa --pipe id", "rpm -q '%(id)'", "rpm -e x"),
        *(
            "sysctl -w a=b",
            "sysctl vm.swappiness=1",
            "sysctl -n -w a=b",
            "sysctl -p",
            "getent shadow",
            "getent hosts x",
        ),
        *(
            "man ./a.1",
            "man 1 ../a.1",
            "man -k /etc/x",
            "man -w -P id ls",
            "mount /dev/sda1 /mnt",
            "timedatectl set-time 1",
        ),
        *("npm run build", "npm config get //host/:_authToken", "npm config set registry x", "npx --version x"),
        *("npx -p x --version", "uvx --version x", "kubectl config view --raw", "kubectl config use-context x"),
        *("helm version --kubeconfig x", "terraform fmt", "code .", "code --list-extensions --install-extension x"),
        *("fzf --version --preview id", "nginx -c x", "hg --version", "last -f x", "ip -batch x", "ip -br -b x"),
        *("swapon /x", "stty sane", "hash -p /tmp/x ls", "compgen -C id", "snap install x", "pyenv install 3"),
    ],
)
def test_one_word_more_or_another_one_asks(line: str) -> None:
    assert standing(line) > Standing.SAFE


@pytest.mark.parametrize(
    "line",
    [
        *("eza -la --git", "exa --tree --level=2", "dust -d 1", "scc --by-file", "ack -w foo src", "ack --python foo"),
        *("iconv -f latin1 -t utf-8 a.txt", "iconv -l", "sdiff -s a b", "colordiff -u a b", "diff3 a b c"),
        *("7z l a.7z", "7za l -slt a.7z", "unrar l a.rar", "ar t libfoo.a", "unzip -p a.whl app/METADATA"),
        *("otool -L app", "lsb_release -a", "pkg-config --cflags --libs libpq", "pipdeptree -r", "csvcut -n data.csv"),
        *("pycodestyle --max-line-length=100 src", "pyflakes src", "vulture src", "yamllint -d relaxed ."),
        *("hadolint Dockerfile", "typos", "typos --diff src", "actionlint", "shfmt -d a.sh", "shfmt -l ."),
    ],
)
def test_listers_and_checkers_that_load_nothing_of_the_project_only_look(line: str) -> None:
    assert standing(line) is Standing.SAFE


@pytest.mark.parametrize(
    "line",
    [
        *("ack --pager=id foo", "ack --output '`id`' foo", "ack --ackrc=x foo", "ack '(?{system q(id)})' src"),
        *("iconv -o out a", "sdiff -o out a b", "sdiff --diff-program=x a b", "diff3 --diff-program=x a b c"),
        *("7z x a.7z", "7z l @list", "7z l a.7z -o/etc", "7z d a.7z x", "ar r a.a x.o", "ar t --plugin x a.a"),
        *("unzip -p a.zip .env", "unzip -p a.zip", "unzip -p a.zip '*'", "unzip -p a.zip x -d /etc", "unrar x a.rar"),
        *("pipdeptree --python ./x", "pipdeptree --graph-output svg", "scc -o out", "csvgrep -f .env a.csv"),
        *("typos -w", "typos --write-changes", "typos --dump-config x", "shfmt -w a.sh", "shfmt -l -w .", "shfmt a.sh"),
        *("actionlint -shellcheck ./x", "pkg-config --define-variable=a=b x", "dust -I x", "otool -arch all -x y @f"),
    ],
)
def test_an_option_of_theirs_that_writes_runs_or_is_not_known_asks(line: str) -> None:
    assert standing(line) > Standing.SAFE


def test_what_they_read_is_known_to_the_roots() -> None:
    assert PathUse("/etc/x.7z", PathEffect.READ) in report("7z l /etc/x.7z").paths
    assert PathUse("/etc/x.zip", PathEffect.READ) in report("unzip -p /etc/x.zip a").paths
    assert PathUse("/etc", PathEffect.LOOK, below=True) in report("eza -T /etc").paths
    assert PathUse("/etc/passwd", PathEffect.READ) in report("iconv -f latin1 /etc/passwd").paths


def test_what_an_archive_printed_is_no_program() -> None:
    assert standing("unzip -p a.zip run.sh | sh") >= Standing.DANGEROUS


@pytest.mark.parametrize(
    "program",
    [
        '{print $1 | "sort"}',
        '{a[$1]++} END{for(k in a) print k, a[k] | "sort -rn -k2,2"}',
        'END{for(k in a) print a[k], k | "sort -t, -u"; print "done"}',
    ],
)
def test_awk_may_print_into_a_plain_sort(program: str) -> None:
    assert standing(f"awk '{program}' x.log") is Standing.SAFE


@pytest.mark.parametrize(
    "program",
    [
        '{print | "sort -o out"}',
        '{print | "sort -T /etc"}',
        '{print | "sort;id"}',
        '{print | "sort" "; id"}',
        '{print | "sort" x}',
        '{print | "sort -t;id"}',
        '{print | "sort -t | id"}',
        '{print | "sort --compress-program=id"}',
        '{print |& "sort"}',
        '{print > "x" | "sort"}',
        '{print | "sorter"}',
        '{"sort" | getline x}',
        '{print | "sort $(id)"}',
        '{print | "sort a > b"}',
        '{print | ("sort" x)}',
    ],
)
def test_what_is_more_than_a_plain_sort_asks(program: str) -> None:
    assert standing(f"awk '{program}' x.log") > Standing.ORDINARY


@pytest.mark.parametrize(
    "line",
    [
        *("pylint --init-hook 'import os' src", "pandoc --filter rm a.md", "pandoc -F rm a.md", "mypy --install-types"),
        *("mypy --python-executable rm src", "latexmk -e 'system(1)' a", "pdflatex --shell-escape a", "mix run -e 'x'"),
        *("rake -e 'x'", "swift -e 'x'", "ocaml -e 'x'", "crystal eval 'x'", "flask shell", "django-admin shell -c x"),
        *("protoc --plugin=protoc-gen-x=/tmp/x a.proto", "bazel clean --expunge", "meson install", "celery -A x purge"),
        *("python manage.py flush --noinput", "python3 src/manage.py shell -c 'x'", "./manage.py migrate"),
        *("uv run python manage.py dbshell", "valgrind rm -rf build", "valgrind --tool=memcheck rm -rf build"),
    ],
)
def test_everyday_programs_that_bring_code_or_reach_far_are_dangerous(line: str) -> None:
    assert standing(line) >= Standing.DANGEROUS


@pytest.mark.parametrize(
    "line",
    [
        *("pylint src", "pandoc a.md -o b.html", "mypy src", "latexmk -pdf a.tex", "rake test", "mix test"),
        *("python manage.py test", "./manage.py makemigrations", "python manage.py showmigrations", "flask routes"),
        *("valgrind ./a.out", "valgrind --leak-check=full ./a.out", "bazel build //x", "ninja -C build", "meson test"),
    ],
)
def test_their_everyday_calls_stay_everyday(line: str) -> None:
    assert standing(line) is Standing.ORDINARY


def test_what_starts_a_program_that_the_projects_settings_name_does_not_only_look() -> None:
    assert standing("cargo tree -d") is Standing.ORDINARY
    assert standing("cargo metadata --format-version 1") is Standing.ORDINARY
    assert standing("mvn --version") is Standing.ORDINARY
    assert standing("cargo metadata --no-deps") is Standing.SAFE
    assert standing("cargo --version") is Standing.SAFE
