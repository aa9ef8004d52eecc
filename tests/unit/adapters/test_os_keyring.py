"""The system's keyring: what cannot be used counts as none, and nobody waits for ever."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import keyring
import keyring.backends.chainer
import keyring.backends.fail
import keyring.backends.null
import keyring.errors
import pytest
from keyring.backend import KeyringBackend

from punie.adapters.keys.os_keyring import OsKeyring
from tests.contract.test_key_vault_contract import InMemory


class Broken(InMemory):
    """Raises whatever its system raises, which need be none of the library's errors."""

    def set_password(self, service: str, username: str, password: str) -> None:
        raise RuntimeError("no session bus")

    def get_password(self, service: str, username: str) -> str | None:
        raise keyring.errors.KeyringLocked("locked")


class Forgetful(InMemory):
    """Takes a secret and has it no more."""

    def set_password(self, service: str, username: str, password: str) -> None: ...


class Asking(InMemory):
    """Waits for a person who does not come."""

    def __init__(self) -> None:
        super().__init__()
        self.left = threading.Event()

    def set_password(self, service: str, username: str, password: str) -> None:
        self.left.wait()

    def get_password(self, service: str, username: str) -> str | None:
        self.left.wait()
        return "too late"


@pytest.fixture(autouse=True)
def the_machines_own() -> Iterator[None]:
    before = keyring.get_keyring()
    yield
    keyring.set_keyring(before)


@pytest.mark.parametrize(
    "backend", [keyring.backends.fail.Keyring, keyring.backends.null.Keyring, Broken, Forgetful], ids=str
)
def test_a_keyring_that_keeps_nothing_counts_as_none(backend: type[KeyringBackend]) -> None:
    keyring.set_keyring(backend())
    vault = OsKeyring()
    assert not vault.put("A", "key")
    assert vault.get("A") is None
    assert not vault.forget("A")


def test_a_chain_of_no_keyrings_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keyring.backends.chainer.ChainerBackend, "backends", ())
    keyring.set_keyring(keyring.backends.chainer.ChainerBackend())
    assert not OsKeyring().put("A", "key")


def test_a_locked_keyring_that_nobody_unlocks_is_left_alone_after_a_while() -> None:
    backend = Asking()
    keyring.set_keyring(backend)
    vault = OsKeyring(read_limit_s=0.01, write_limit_s=0.01)
    assert vault.get("A") is None
    assert not vault.put("A", "key")
    backend.left.set()
    for thread in threading.enumerate():
        if thread.name == "keyring":
            thread.join()
