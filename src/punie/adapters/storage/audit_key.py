"""The first key of the audit trail's seal, by which the whole chain can be checked."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from attrs import field, frozen

from punie.adapters.storage.database import OWNER_ONLY_FILE
from punie.mechanics.files import write_at_once
from punie.ports.machine import KeyVault

KEY_FILE = "audit.key"
IN_KEYRING = "keyring"
"""The content of the key's file once the key is in the keyring."""

KEY = re.compile(r"[0-9a-f]{64}")


@frozen
class KnownKey:
    """The first key of the seal, as it was found; None where there is none, or where `problem` says why not."""

    key: str | None = field(default=None, repr=False)
    place: str | None = None
    problem: str | None = None


@frozen
class SealKey:
    """The first key of the seal: in a file beside the database or, moved there by `move`, in the keyring.

    A program that can read it can seal another chain. Its name in the keyring is that of the database, or of the
    `trail`, so that no new file can take its place. `file` is beside `database`. A process that only writes has no
    `vault`. Methods block.
    """

    database: Path
    vault: KeyVault | None = None
    file: str = KEY_FILE
    trail: str | None = None

    @property
    def path(self) -> Path:
        """The file of the key."""
        return self.database.with_name(self.file)

    @property
    def name(self) -> str:
        """The name of the key in the keyring."""
        return f"audit trail of {self.trail or self.database.resolve()}"

    def keep(self, key: str) -> str | None:
        """Keep the key of a new chain in the file; returns the reason where it could not be kept."""
        try:
            if (written := self._written()) is None:
                write_at_once(self.path, f"{key}\n", OWNER_ONLY_FILE)
                return None
        except OSError as error:
            return f"{self.path} cannot be written: {(error.strerror or 'it is refused').lower()}"
        return None if written == key else f"{self.path} belongs to another trail; move it away where that one is gone"

    def find(self) -> KnownKey:
        """The key, from the keyring before the file."""
        kept = None if self.vault is None else self.vault.get(self.name)
        if kept is not None:
            return KnownKey(kept, f"the keyring, as {self.name}")
        try:
            written = self._written()
        except OSError as error:
            return KnownKey(problem=f"its key in {self.path} cannot be read: {(error.strerror or 'refused').lower()}")
        if written is None:
            return KnownKey()
        if KEY.fullmatch(written):
            return KnownKey(written, str(self.path))
        if written == IN_KEYRING:
            return KnownKey(problem=f"its key ({self.name}) is not to be had from the keyring: unlock it and try again")
        return KnownKey(problem=f"{self.path} holds no key: put it back from a backup")

    def move(self, key: str) -> bool:
        """Move the key from the file to the keyring; False where it is there already, or no keyring keeps it."""
        with suppress(OSError):  # the next check tries again
            if self.vault is not None and self._written() == key and self.vault.put(self.name, key):
                write_at_once(self.path, f"{IN_KEYRING}\n", OWNER_ONLY_FILE)
                return True
        return False

    def _written(self) -> str | None:
        try:
            return self.path.read_bytes().decode("ascii", "replace").strip()
        except FileNotFoundError:
            return None
