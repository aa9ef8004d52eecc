"""Calls that only look, of programs that do far more: each is known word for word, or by its first option.

They are laid over the judges of all families; a call that is not listed here is left to its own judge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from shellsight.words.call import Call, Judge, Outcome, safe, unknown

_VERSIONED = (
    "7z 7za act bat batcat caddy cookiecutter delta deno direnv dust eza exa ffmpeg ffplay ffprobe fnm fzf "
    "htop httpd jj kind lazygit latex lsd mkcert mongod mongos mysqld ncdu nginx parallel pdftotext pg_config "
    "postgres procs redis-server rsync scc sd starship streamlit svn tar thrift tig virtualenv watch watchman "
    "xargs xsv zip zoxide convert magick k9s minikube skaffold pulumi flyctl fly k6 helm"
)
"""Programs of which `--version` prints a line and ends, whatever lies in the folder."""

_CALLS: Mapping[str, str] = {
    "apachectl": "-v, -V",
    "asdf": "current, list, plugin list, version",
    "bat": "-V, --help",
    "caddy": "version",
    "cargo": "-vV",
    "code": "-v, --list-extensions, --list-extensions --show-versions",
    "compgen": "-a, -b, -c, -k",
    "convert": "-version",
    "deno": "-V",
    "diskutil": "list",
    "docker": "system info, buildx version",
    "exiftool": "-ver",
    "ffmpeg": "-version, -hide_banner -version",
    "ffplay": "-version",
    "ffprobe": "-version",
    "findmnt": ", /",
    "flyctl": "version",
    "gh": "alias list, config list, extension list, help pr, help issue, help run, help repo",
    "hash": "-r",
    "helm": "version, version --short, plugin list",
    "hostnamectl": ", status",
    "httpd": "-v, -V",
    "k6": "version",
    "k9s": "version",
    "kind": "version",
    "kubectl": (
        "config current-context, config get-contexts, config get-contexts -o name, config get-clusters, "
        "version --client"
    ),
    "launchctl": "list",
    "ldconfig": "-p, --print-cache",
    "localectl": ", status",
    "loginctl": ", list-sessions, list-users",
    "magick": "-version",
    "minikube": "version",
    "mount": ", -l",
    "nginx": "-v, -V",
    "npm": (
        "run, run-script, config get registry, config get prefix, config get cache, config get userconfig, pkg get, "
        "pkg get name, pkg get version, pkg get scripts, pkg get dependencies, pkg get engines, "
        "pkg get devDependencies, -g ls, -g ls --depth=0, -g list, -g list --depth=0"
    ),
    "npx": "--version, -v, --help",
    "nvidia-smi": ", -L",
    "nvm": "ls, list, current, version",
    "pdftotext": "-v",
    "php": "-m, --ini",
    "pip": "cache dir, cache info, cache list",
    "pip3": "cache dir, cache info, cache list",
    "pipenv": "--venv, --where",
    "pmset": "-g",
    "poetry": "config virtualenvs.in-project, config virtualenvs.path, config virtualenvs.create, config cache-dir",
    "pulumi": "version",
    "pyenv": (
        "versions, versions --bare, version, version-name, root, global, local, shims, commands, which python, "
        "which python3, which pip, whence python"
    ),
    "rbenv": "versions, version, root, global, local",
    "rsync": "-V",
    "scala": "-version",
    "screen": "-ls, -list, -v",
    "skaffold": "version",
    "snap": "list, version",
    "flatpak": "list",
    "stty": "size, -a",
    "swapon": "--show, -s",
    "system_profiler": "SPHardwareDataType, SPSoftwareDataType",
    "systemctl": "--failed, list-sockets",
    "terraform": "fmt -check, fmt -check -recursive, fmt -recursive -check, fmt -check -diff",
    "timedatectl": ", status, show",
    "tmux": "ls, list-sessions, list-windows, list-panes, list-windows -a, list-panes -a, -V",
    "tofu": "fmt -check, fmt -check -recursive, fmt -recursive -check, fmt -check -diff",
    "uv": "tool list, tool dir, help, help pip, help run, help sync, help add",
    "uvx": "--version, -V, --help",
    "volta": "list, list all",
    "wrk": "-v",
    "xcode-select": "-p, --print-path",
    "xcrun": "--show-sdk-path, --show-sdk-version",
    "zig": "version",
    "zip": "-v, -h",
}
"""Calls with their words, commas between them; an empty one is the bare program."""

_ASKED: Mapping[str, str] = {
    "dpkg": "-[lLSs]|--list|--listfiles|--search|--status|--print-architecture|--get-selections|--version",
    "dpkg-query": "-[lLSsW]|--list|--listfiles|--search|--status|--show|--version",
    "rpm": "-q[aildcR]*|--version",
    "pacman": "-Q[eqdmtil]*|--version",
    "sysctl": "-n|-a|(?:kern|kernel|hw|vm|machdep|fs|net)(?:\\.[a-z0-9_]+)+",
    "getent": "passwd|group|services|protocols",
    "man": "-[kfw]|[1-8]",
}
"""Programs that show what a data base of the machine holds: first words that ask, plain words may follow."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+:@~-]*\Z")
_PLACE = re.compile(r"/usr(/[A-Za-z0-9._+-]+)+\Z")
"""A file of the machine's own, of which `dpkg -S` tells the package."""


def _words(call: Call) -> tuple[str, ...] | None:
    """The call's words; None where one is not certain."""
    return tuple(arg.text for arg in call.args) if all(arg.certain for arg in call.args) else None


def exactly(calls: str, otherwise: Judge) -> Judge:
    """A judge who lets these calls pass, and asks the other one about all the rest."""
    known = frozenset(tuple(words.split()) for words in calls.split(","))

    def judge(call: Call) -> Outcome:
        return safe("only looks") if _words(call) in known else otherwise(call)

    return judge


def asked(first: str, otherwise: Judge) -> Judge:
    """A judge who lets calls pass that begin with one of these words and go on with names alone."""
    begins = re.compile(rf"(?:{first})\Z")

    def judge(call: Call) -> Outcome:
        words = _words(call)
        if words and begins.match(words[0]) and all(_is_name(call, word) for word in words[1:]):
            return safe("only looks")
        return otherwise(call)

    return judge


def _is_name(call: Call, word: str) -> bool:
    """Whether the word names a package or a page; a manual page given by its place would be rendered from there."""
    return _NAME.match(word) is not None or (call.name == "dpkg" and _PLACE.match(word) is not None)


def _unheard(call: Call) -> Outcome:
    return unknown(f"nothing is known of a program called {call.name}")


def laid_over(known: Mapping[str, Judge]) -> dict[str, Judge]:
    """The judges of all programs, with the calls of this module let pass first."""
    judges = dict(known)
    for name in _VERSIONED.split():
        judges[name] = exactly("--version", judges.get(name, _unheard))
    for name, calls in _CALLS.items():
        judges[name] = exactly(calls, judges.get(name, _unheard))
    for name, first in _ASKED.items():
        judges[name] = asked(first, judges.get(name, _unheard))
    return judges
