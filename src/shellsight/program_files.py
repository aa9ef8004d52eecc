"""The files that a program's command line names as what it runs (scripts, modules, files of package runners)."""

from __future__ import annotations

import posixpath
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

_MODULE = re.compile(r"([A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)(:[\w.]+)?")
_MODULE_FLAG = re.compile("-[A-Za-z]*m")
_JOINED = re.compile(r"(-m)([A-Za-z_][\w.]*)|(-[A-Za-z])(\.{0,2}/.*)|([^=]+)=(.+)", re.DOTALL)
_SCRIPT = (".js", ".mjs", ".cjs", ".ts", "/package.json", "/index.js", "/index.mjs", "/index.ts")
_OPENED = {
    re.compile(r"python[\d.]*|pypy3?"): ("/__main__.py",),
    re.compile("node|nodejs|deno|bun|tsx|ts-node|npx|bunx"): _SCRIPT,
    re.compile("uvx|pipx|--from"): ("/pyproject.toml",),
    re.compile("run"): ("/__main__.py", "/main.go", *_SCRIPT),
}
"""The file that a program of such a name opens where its first operand is the name without its ending, or a folder."""
_FOLDER_OPTIONS = frozenset({"--directory", "--project", "--prefix", "--cwd", "--dir", "-C", "cd"})
_LOADING = re.compile(
    "NODE_OPTIONS|LD_PRELOAD|DYLD_INSERT_LIBRARIES|BASH_ENV|ENV|PYTHONSTARTUP|PERL5OPT|RUBYOPT|JAVA_TOOL_OPTIONS"
)
_COMPOSE = ("compose.yaml", "compose.yml", "docker-compose.yaml", "docker-compose.yml", "Dockerfile")
_OF_RUNNERS = {
    **dict.fromkeys(("npm", "pnpm", "yarn", "bun"), ("package.json",)),
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "rye"), ("pyproject.toml",)),
    **dict.fromkeys(("docker", "docker-compose", "podman"), _COMPOSE),
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile", ".justfile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "deno": ("deno.json", "deno.jsonc"),
    "cargo": ("Cargo.toml", "src/main.rs"),
    "go": ("go.mod",),
}


def named_files(words: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    """The paths that a command line may mean, in its order; most of them do not exist.

    `words` are the program and its arguments, `environ` the variables that are set for it. A relative path begins in
    the directory where the program starts. Nothing is read: the files that a script imports are not known here.
    """
    pieces = [piece for word in words for piece in _pieces(word)]
    loaded = [value.replace(":", " ") for name, value in environ.items() if _LOADING.fullmatch(name)]
    names = [*_names(pieces, environ), *(piece for value in loaded for piece in _pieces(value))]
    folders = ["", *(after for option, after in pairwise(pieces) if option in _FOLDER_OPTIONS)]
    for name in dict.fromkeys(names):
        yield from (posixpath.join(folder, name) for folder in folders)


def _names(pieces: Sequence[str], environ: Mapping[str, str]) -> Iterator[str]:
    if pieces and "/" not in pieces[0]:
        yield from (posixpath.join(folder, pieces[0]) for folder in environ.get("PATH", "").split(":") if folder)
    modules = ("", "src", *filter(None, environ.get("PYTHONPATH", "").split(":")))
    before, endings = "", ()
    for piece in pieces:
        yield piece
        name = posixpath.basename(piece)
        yield from _OF_RUNNERS.get(name, ())
        module = _MODULE.fullmatch(piece)
        if module is not None and (module[2] or "." in piece or _MODULE_FLAG.fullmatch(before)):
            yield from _files_of(module[1].split("."), modules)
        if ":" in piece:  # a list of files, or a script with the name of an object in it, such as server.py:mcp
            yield from piece.split(":")
        if not piece.startswith("-"):
            yield from (piece.rstrip("/") + ending for ending in endings)
            endings = ()
        endings = next((opened for program, opened in _OPENED.items() if program.fullmatch(name)), endings)
        before = piece


def _pieces(word: str) -> Iterator[str]:
    """The word, or the words of a shell line in it; an option that is joined to its value becomes two pieces."""
    try:
        words = shlex.split(word.replace(";", " ")) if any(sign.isspace() for sign in word) else [word]
    except ValueError:
        words = word.split()
    for one in filter(None, words):
        joined = _JOINED.fullmatch(one)
        parts = [one] if joined is None else [part for part in joined.groups() if part]
        yield from (part.removeprefix("file://").removeprefix("@") for part in parts)


def _files_of(names: Sequence[str], folders: Sequence[str]) -> Iterator[str]:
    """The files of a Python module of that dotted name, and those of the packages around it, in these folders."""
    for folder in folders:
        for depth in range(1, len(names)):
            yield posixpath.join(folder, *names[:depth], "__init__.py")
        whole = posixpath.join(folder, *names)
        yield from (f"{whole}.py", f"{whole}/__init__.py", f"{whole}/__main__.py")
