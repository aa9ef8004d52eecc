"""Names of files and folders that usually hold keys or passwords, and how a path is compared with them."""

from __future__ import annotations

import fnmatch
import re
from functools import lru_cache
from pathlib import PurePath

SECRET_NAMES = (
    ".env", ".env.*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.keystore", "*.kdbx", "*.ppk",
    "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", ".netrc", "_netrc", ".pgpass", ".pypirc", ".npmrc",
    ".git-credentials", ".htpasswd", "credentials", "credentials.json", "secrets.toml", "secrets.yaml", "secrets.yml",
    "secrets.json", "service-account*.json", "*.tfvars", "*.tfstate",
)  # fmt: skip
"""File names that usually hold keys or passwords; compared without regard to case."""

_SECRET_NAME = re.compile("|".join(fnmatch.translate(pattern) for pattern in SECRET_NAMES))

SECRET_FOLDERS = frozenset({".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker"})
PRIVATE_NAMES = frozenset({
    ".bash_history", ".zsh_history", ".sh_history", ".history", ".python_history", ".node_repl_history",
    ".psql_history", ".mysql_history", ".sqlite_history", ".lesshst", ".viminfo", ".wget-hsts", ".boto", ".s3cfg",
    ".dockercfg", ".vault-token", ".my.cnf", ".mylogin.cnf", ".fetchmailrc", ".msmtprc", ".authinfo",
    ".authinfo.gpg", ".gitcookies", ".age", "shadow", "gshadow", "master.passwd", "sudoers", "environ",
    "authorized_keys", "known_hosts", "cookies", "cookies.sqlite", "login data", "logins.json", "key4.db",
    "key3.db", "web data", "local state", "hosts.yml", ".credentials.json", "application_default_credentials.json",
    "access_tokens.db", "credentials.db", "credentials.tfrc.json", "auth.json", "kubeconfig", ".claude.json",
    "token", "tokens", "secret", "secrets", ".secrets", "password", "passwords", ".pass", "passwd.txt",
    "passwords.txt", "secrets.env", "secret.key", ".envrc", ".env~", "htpasswd", ".rhosts", ".terraformrc",
    "settings.xml", "gradle.properties.secret", "api_key", "apikey", "api_key.txt", "apikey.txt", "master.key",
    "config.fish_history", "fish_history", "", "secrets.txt", "credentials.txt", "credentials.yml",
    "credentials.yaml", "credentials.yml.enc",
})  # fmt: skip
"""More names, in lower case, of which a line that shows their content counts as showing secrets."""

PRIVATE_FOLDERS = SECRET_FOLDERS | frozenset({
    ".mozilla", ".password-store", "keychains", "keyrings", ".gcloud", "gcloud", ".config/gcloud", "google-chrome",
    "chromium", "bravesoftware", "firefox", ".thunderbird", ".bitcoin", ".electrum", ".ethereum", ".terraform.d",
    ".oci", ".vault.d", "1password", ".cloudflared", ".gsutil", ".claude", ".codex", ".cargo-credentials",
    "sudoers.d", ".step", ".sops", ".age", ".local/share/keyrings", ".subversion", ".ngrok2", ".fly", ".heroku",
    ".doctl", ".pki",
})  # fmt: skip
"""More folders of that kind, in lower case."""

NOT_SECRET = frozenset({".env.example", ".env.sample", ".env.template", ".env.dist"})

PLAIN = re.compile(r"(?!//)[^:\\]*\Z")
"""Nothing that some system splits elsewhere than at its slashes: no drives, shares or backslashes."""


@lru_cache(maxsize=2048)
def parts_of(path: str) -> tuple[str, ...]:
    """The components of a path as `PurePath.parts` has them, for those who look at many."""
    if not PLAIN.match(path):
        return PurePath(path).parts
    parts = [part for part in path.split("/") if part and part != "."]
    return ("/", *parts) if path.startswith("/") else tuple(parts)


@lru_cache(maxsize=2048)
def is_secret(path: str) -> bool:
    """Whether the path's name, or a folder on its way, usually holds keys or passwords."""
    parts = [part.lower() for part in parts_of(path)] or [""]
    if parts[-1] in NOT_SECRET:
        return False
    return not SECRET_FOLDERS.isdisjoint(parts[:-1]) or _SECRET_NAME.match(parts[-1]) is not None
