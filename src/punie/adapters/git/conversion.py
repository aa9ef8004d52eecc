"""What git does to a file between the working tree and the store without running anything: line ends and modes."""

from __future__ import annotations

import stat
from functools import cached_property

from dulwich.attrs import GitAttributes
from dulwich.index import IndexEntry, cleanup_mode
from dulwich.line_ending import CRLFAction, line_ending_filter_for_action, read_eol_config, resolve_crlf_action

from punie.adapters.git.checkout import Checkout
from punie.domain.errors import ToolFailedError

_NEEDS_A_PROGRAM = (b"filter", b"working-tree-encoding")


class Conversion:
    """The conversions that one checkout asks for; lives as long as one call."""

    def __init__(self, checkout: Checkout) -> None:
        self._checkout = checkout
        self._filemode = checkout.repo.get_config().get_boolean((b"core",), b"filemode", default=True)

    @cached_property
    def _attributes(self) -> GitAttributes:
        return self._checkout.repo.get_gitattributes()

    @cached_property
    def _line_ends(self) -> tuple[str, bytes, bytes]:
        return read_eol_config(self._checkout.repo.get_config_stack())

    def same_mode(self, file_mode: int, entry_mode: int) -> bool:
        """Whether a file is of the entry's kind, and as executable where the repository keeps that."""
        if stat.S_IFMT(file_mode) != stat.S_IFMT(entry_mode):
            return False
        return not self._filemode or stat.S_ISLNK(file_mode) or cleanup_mode(file_mode) == cleanup_mode(entry_mode)

    def mode(self, file_mode: int, old_mode: int | None) -> int:
        """The mode to store for a file."""
        if self._filemode or stat.S_ISLNK(file_mode):
            return cleanup_mode(file_mode)
        return old_mode if old_mode is not None and stat.S_ISREG(old_mode) else 0o100644

    def clean(self, path: bytes, data: bytes, entry: IndexEntry | None) -> bytes:
        """The bytes as the store would hold them: line ends converted where attributes or configuration say so."""
        if b"\r\n" not in data:
            return data
        core_eol, autocrlf, _safe = self._line_ends
        action = resolve_crlf_action(self._attributes.match_path(path), core_eol, autocrlf)
        if action is CRLFAction.BINARY:
            return data
        converter = line_ending_filter_for_action(action, b"false", lambda: self._store_has_crlf(entry))
        return data if converter is None else converter.clean(data, path)

    def require_no_program(self, path: bytes) -> None:
        """Raise `ToolFailedError` for a file that git would hand to a program or re-encode first (LFS and the like)."""
        attributes = self._attributes.match_path(path)
        for name in _NEEDS_A_PROGRAM:
            if attributes.get(name) not in {None, False}:
                raise ToolFailedError(
                    f"{path.decode('utf-8', 'replace')} has git's {name.decode()} attribute, which asks for a "
                    "program or an encoding that Punie leaves to git. Nothing was committed; use run_command."
                )

    def _store_has_crlf(self, entry: IndexEntry | None) -> bool:
        return entry is not None and b"\r\n" in self._checkout.stored(entry.sha)
