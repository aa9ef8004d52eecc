"""The files that a program's command line names."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from shellsight.program_files import named_files
from tests.shellsight.linked_project import linked_project

FORMS = {
    "./server.py": "server.py",
    "python server.py": "server.py",
    "python -m pkg.mod": "pkg/__init__.py pkg/mod.py",
    "python -Im pkg": "pkg/__init__.py pkg/__main__.py",
    "python -mtool": "src/tool.py",
    "python pkg": "pkg/__main__.py",
    "node web": "web/index.js web/package.json",
    "node .": "index.js package.json",
    "node server": "server.js",
    "node --import=./hook.mjs -r ./hook.cjs server.js": "hook.cjs hook.mjs server.js",
    "node --import=file://{root}/hook.mjs x": "hook.mjs",
    "npm run serve": "package.json",
    "npm --prefix web start": "package.json web/package.json",
    "uv --directory deep run inner.py": "deep/inner.py pyproject.toml",
    "uv run fastmcp run server.py:mcp": "pyproject.toml server.py",
    "uvicorn pkg.mod:app": "pkg/__init__.py pkg/mod.py",
    "sh -c 'cd deep && python inner.py; ./go.sh'": "deep/inner.py go.sh",
    "env MODE=x go.sh": "go.sh",
    "java @args.txt": "args.txt",
    "java -cp server.js:go.sh Main": "go.sh server.js",
    "npx -y ./web": "web/index.js web/package.json",
    "uvx --from ./kit tool": "kit/pyproject.toml",
    "go run ./cmd": "cmd/main.go",
    "bash {root}/go.sh": "go.sh",
    "outside": "",
    "npx -y some-server {root}": "",
    "uvx some-server src": "",
    "python -c 'print(1)'": "",
    "link.py": "link.py",
    "away/there.sh": "away/there.sh",
}
FILES = (
    "server.py", "server.js", "pkg/__init__.py", "pkg/__main__.py", "pkg/mod.py", "src/tool.py", "src/__init__.py",
    "web/index.js", "web/package.json", "index.js", "package.json", "hook.mjs", "hook.cjs", "deep/inner.py", "go.sh",
    "pyproject.toml", "args.txt", "kit/pyproject.toml", "cmd/main.go",
)  # fmt: skip


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return linked_project(tmp_path, FILES)


@pytest.mark.parametrize("line", FORMS)
def test_the_files_that_a_line_names_are_among_them(root: Path, line: str) -> None:
    named = {(root / name).resolve() for name in named_files(shlex.split(line.format(root=root)), {})}
    assert {path for path in named if path.is_file()} == {(root / name).resolve() for name in FORMS[line].split()}


def test_variables_that_load_files_name_them_too() -> None:
    assert {"./hook.cjs", "./x.so"} <= {
        *named_files(["node", "x"], {"NODE_OPTIONS": "-r ./hook.cjs", "LD_PRELOAD": "a:./x.so"})
    }
    assert "deep/inner.py" in {*named_files(["python", "-m", "inner"], {"PYTHONPATH": "deep:/usr/lib"})}
    assert "deep/inner.py" in {*named_files(["inner.py"], {"PATH": "/usr/bin:deep"})}
    assert "server.py" not in {*named_files(["x"], {"DATA": "server.py"})}


def test_any_words_are_read_without_an_error() -> None:
    assert list(named_files([], {})) == []
    assert "half" in {*named_files(["", "\x00", 'half "quoted', "-", "=", "--x=", "@", ":"], {})}
