"""The part of Punie's environment that a child process receives: an allow-list, so that no key reaches a command.

Left out on purpose: every provider's key and token, PUNIE_*, the address of the SSH agent, and anything this list
does not name. A command that needs more sets it itself, where the person who is asked can see it.
"""

from __future__ import annotations

from collections.abc import Mapping

NAMES = frozenset(
    {
        "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP",
        "VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PYENV_VERSION",
        "NVM_DIR", "NODE_PATH", "PNPM_HOME", "VOLTA_HOME", "JAVA_HOME", "ANDROID_HOME", "DOTNET_ROOT",
        "GOPATH", "GOROOT", "GOMODCACHE", "GOCACHE", "CARGO_HOME", "RUSTUP_HOME",
        "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR",
        "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "LD_LIBRARY_PATH", "NO_COLOR",
    }
)  # fmt: skip
"""Where programs, tool chains and caches are, and how a person reads: language, time zone, colour."""

PREFIXES = ("LC_", "PYTHON")
PROXIES = frozenset({"http_proxy", "https_proxy", "all_proxy", "no_proxy"})
_SECRET_ENDINGS = ("KEY", "KEYS", "TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIALS")


def child_environment(ours: Mapping[str, str]) -> dict[str, str]:
    """The variables of `ours` that a child may have, and a terminal type that promises no colours and no cursor."""
    return {name: value for name, value in ours.items() if _passes(name, value)} | {"TERM": "dumb"}


def _passes(name: str, value: str) -> bool:
    if name.upper().endswith(_SECRET_ENDINGS):
        return False
    if name.lower() in PROXIES:
        return "@" not in value  # a proxy's address may carry a user's name and password
    return name in NAMES or name.startswith(PREFIXES)
