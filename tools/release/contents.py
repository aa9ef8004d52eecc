"""What is in a wheel and an sdist: everything that belongs there, and nothing of the machine that built them."""

from __future__ import annotations

import configparser
import email.parser
import re
import tarfile
import zipfile
from collections.abc import Collection, Iterable
from pathlib import Path

PACKAGE = "src/"
MADE = re.compile(
    r"(^|/)(__pycache__|node_modules|\.venv|\.git|\.[a-z]+_cache|\.hypothesis|\.coverage[^/]*|dist|build)(/|$)"
)
LICENCE, TYPED = "licenses/LICENSE", "punie/py.typed"


def wheel_problems(wheel: Path, *, known: Collection[str], version: str, places: Iterable[str] = ()) -> list[str]:
    """What is wrong with the wheel, a sentence each.

    `known` are the project's files as git names them, `places` the paths of the building machine that no file may name.
    """
    with zipfile.ZipFile(wheel) as archive:
        files = {item.filename: archive.read(item) for item in archive.infolist()}
        modes = {item.filename: item.external_attr >> 16 & 0o777 for item in archive.infolist()}
    info = f"punie-{version}.dist-info/"
    wanted = {name.removeprefix("src/") for name in known if name.startswith(PACKAGE)}
    wanted |= {info + name for name in ("METADATA", "WHEEL", "RECORD", "entry_points.txt", LICENCE)}
    faults = _differences(wheel.name, set(files), wanted)
    if TYPED not in files:
        faults.append(f"{wheel.name}: {TYPED} is missing, and without it nobody sees our types")
    faults += _mode_faults(wheel.name, modes)
    faults += _place_faults(wheel.name, files, places)
    if info + "METADATA" in files:
        faults += _metadata_faults(files[info + "METADATA"], version)
    scripts = configparser.ConfigParser()
    scripts.read_string(files.get(info + "entry_points.txt", b"").decode())
    if not scripts.has_option("console_scripts", "punie"):
        faults.append(f"{wheel.name}: no console script `punie`")
    return faults


def sdist_problems(sdist: Path, *, known: Collection[str], version: str, places: Iterable[str] = ()) -> list[str]:
    """What is wrong with the sdist, a sentence each; arguments as for `wheel_problems`."""
    top = f"punie-{version}/"
    with tarfile.open(sdist) as archive:
        members = archive.getmembers()
        files = {item.name: _content(archive, item) for item in members if item.isfile()}
    faults = [f"{sdist.name}: {item.name} is no plain file" for item in members if not item.isfile()]
    faults += [
        f"{sdist.name}: {item.name} has the owner {item.uname or item.uid}"
        for item in members
        if item.uid or item.uname
    ]
    faults += _differences(sdist.name, set(files), {top + name for name in known} | {top + "PKG-INFO"})
    faults += _mode_faults(sdist.name, {item.name: item.mode & 0o777 for item in members})
    faults += _place_faults(sdist.name, files, places)
    return faults + _metadata_faults(files.get(top + "PKG-INFO", b""), version)


def _content(archive: tarfile.TarFile, item: tarfile.TarInfo) -> bytes:
    opened = archive.extractfile(item)
    return opened.read() if opened else b""


def _differences(where: str, found: set[str], wanted: set[str]) -> list[str]:
    made = {name for name in found if MADE.search(name)}
    return [
        *(f"{where}: {name} is missing" for name in sorted(wanted - found)),
        *(f"{where}: {name} is something that a tool left behind" for name in sorted(made)),
        *(f"{where}: {name} is not a file of the project" for name in sorted(found - wanted - made)),
    ]


def _mode_faults(where: str, modes: dict[str, int]) -> list[str]:
    return [
        f"{where}: {name} has the mode {mode:o}" for name, mode in sorted(modes.items()) if mode not in {0o644, 0o755}
    ]


def _place_faults(where: str, files: dict[str, bytes], places: Iterable[str]) -> list[str]:
    return [
        f"{where}: {name} names a place of the building machine, {place}"
        for place in places
        for name, content in sorted(files.items())
        if place.encode() in content
    ]


def _metadata_faults(text: bytes, version: str) -> list[str]:
    said = email.parser.BytesHeaderParser().parsebytes(text)
    faults = [f"metadata: Version is {said['Version']}, not {version}"] if said["Version"] != version else []
    if said["License-Expression"] != "MIT":
        faults.append("metadata: License-Expression is not MIT")
    direct = [need for need in said.get_all("Requires-Dist", []) if " @ " in need]
    return faults + [f"metadata: {need} asks for an address, which no registry takes" for need in direct]
