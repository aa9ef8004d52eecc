"""Changes to the user's own `mcp.json` that keep everything else in it, comments too, as it was written."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from attrs import frozen

from punie.bootstrap.server_files import NO_SERVERS, ROOT_KEYS, ServersFileError
from punie.bootstrap.settings.files import MAX_FILE_BYTES, bytes_of
from punie.bootstrap.settings_writing import replace_file
from punie.domain.values.json_value import json_type
from punie.domain.values.jsonc import Twice, parse_jsonc
from punie.domain.values.jsonc_edit import with_member, with_value, without_member


@frozen
class _Read:
    """The file: its text, the same with an empty table where it has none, what that says, and where its servers are."""

    text: str
    whole: str
    root: Mapping[str, object]
    path: tuple[str, ...]
    servers: Mapping[str, object]


@frozen
class ServersFile:
    """The file at `path`; each change reads it anew, and raises `ServersFileError` where it is left as it was.

    It is replaced at once or not at all, and what was there before stands beside it as `mcp.json.bak`.
    """

    path: Path

    def servers(self) -> Mapping[str, object]:
        """What it defines, by name; nothing where there is no file."""
        return self._read().servers

    def add(self, name: str, entry: Mapping[str, object]) -> None:
        """Define a server that it does not define yet."""
        read = self._read()
        if name in read.servers:
            raise ServersFileError(f"{self.path}: it has a server {name!r} already")
        self._write(read, with_member(read.whole, read.path, name, entry), {**read.servers, name: entry})

    def remove(self, name: str) -> None:
        """Take a server out that it defines."""
        read = self._read()
        self._entry(read, name)
        left = {other: entry for other, entry in read.servers.items() if other != name}
        self._write(read, without_member(read.whole, read.path, name), left)

    def switch(self, name: str, *, off: bool) -> bool:
        """Say of a server that it defines whether it is used; gives whether anything had to change."""
        read = self._read()
        entry, text, path = self._entry(read, name), read.whole, (*read.path, name)
        changed = dict(entry)
        if off and "disabled" in entry:
            text, changed["disabled"] = with_value(text, path, "disabled", True), True
        elif off and entry.get("enabled") is not False:
            text, changed["disabled"] = with_member(text, path, "disabled", True), True
        elif not off:
            if "disabled" in entry:
                text = without_member(text, path, "disabled")
                del changed["disabled"]
            if entry.get("enabled") is False:
                text, changed["enabled"] = with_value(text, path, "enabled", True), True
        if changed == entry:
            return False
        self._write(read, text, {**read.servers, name: changed})
        return True

    def _entry(self, read: _Read, name: str) -> Mapping[str, object]:
        entry = self._object(read.servers[name], f"what it says of {name!r}")
        _check_once(entry, self.path)
        return entry

    def _read(self) -> _Read:
        try:
            data = bytes_of(self.path)
        except (FileNotFoundError, NotADirectoryError):
            data = b""
        except OSError as error:
            raise ServersFileError(f"{self.path}: {error.strerror or 'it cannot be read'}") from error
        if len(data) > MAX_FILE_BYTES:
            raise ServersFileError(f"{self.path}: it is larger than {MAX_FILE_BYTES} bytes")
        try:
            text = data.decode("utf-8")
            whole = text if text.strip() else '{\n  "mcpServers": {}\n}\n'
            root = dict(self._object(parsed := parse_jsonc(whole), "it"))
            path: tuple[str, ...] = tuple(key for key in ROOT_KEYS if key in root)[:1]
            if not path and root.keys() <= NO_SERVERS:
                whole, path = with_member(whole, (), ROOT_KEYS[0], {}), ROOT_KEYS[:1]
                root[ROOT_KEYS[0]] = {}
        except ValueError as error:
            raise ServersFileError(f"{self.path}: it is not valid JSON ({error})") from error
        table = self._object(root[path[0]], f'"{path[0]}"') if path else root
        for found in (parsed, table):
            _check_once(found, self.path)
        servers = {name: entry for name, entry in table.items() if path or name not in NO_SERVERS}
        if not path and not all(isinstance(entry, Mapping) for entry in servers.values()):
            raise ServersFileError(f'{self.path}: it has no "mcpServers"')
        return _Read(text, whole, root, path, servers)

    def _object(self, value: object, what: str) -> Mapping[str, object]:
        if not isinstance(value, Mapping):
            raise ServersFileError(f"{self.path}: {what} must be an object, not {json_type(value)}")
        return cast("Mapping[str, object]", value)

    def _write(self, read: _Read, after: str, servers: Mapping[str, object]) -> None:
        """Read what is going to be written as any reader will, so that no oddity of a file is made worse."""
        if read.path:
            expected: Mapping[str, object] = {**read.root, read.path[0]: servers}
        else:
            kept = {name: value for name, value in read.root.items() if name in NO_SERVERS or name in servers}
            expected = {**kept, **servers}
        try:
            understood = json.dumps(parse_jsonc(after)) == json.dumps(expected)
        except ValueError:
            understood = False
        if not understood:
            raise ServersFileError(f"{self.path}: it cannot be changed without touching the rest; change it by hand")
        try:
            replace_file(self.path, read.text, after)
        except OSError as error:
            raise ServersFileError(f"{self.path}: {error.strerror or 'it cannot be written'}") from error


def _check_once(found: object, path: Path) -> None:
    if isinstance(found, Twice) and found.again:
        raise ServersFileError(f"{path}: {min(found.again)!r} is there twice; keep one of them")
