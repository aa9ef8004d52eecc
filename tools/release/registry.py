"""The rules of the ACP registry for an agent's folder: `agent.json`, and an icon in one colour that is not its own.

The rules are those that the registry's own CI applies to a submission; which addresses exist can only be asked once the
package is published, and is not asked here.
"""

from __future__ import annotations

import json
import re
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

from tools.release import project
from tools.release.project import ROOT

FOLDER = ROOT / "packaging/registry/punie"
IDENTIFIER = re.compile(r"[a-z][a-z0-9-]*")
REQUIRED = ("id", "name", "version", "description", "distribution")
OPTIONAL = ("repository", "website", "authors", "license", "icon")
ICON_SIZE = "16"
SHAPES = {"svg", "g", "path", "circle", "rect", "line", "polyline", "polygon", "ellipse", "title"}
PAINTS = {"fill", "stroke", "color", "stop-color"}


def entry_faults(folder: Path, version: str) -> list[str]:
    """What is wrong with `agent.json` of that folder for that version of the package; a sentence each."""
    try:
        entry: dict[str, Any] = json.loads((folder / "agent.json").read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        return [f"agent.json cannot be read: {error}"]
    faults = [f"agent.json: {key} is missing" for key in REQUIRED if not entry.get(key)]
    faults += [f"agent.json: {key} is no key of the registry" for key in entry if key not in {*REQUIRED, *OPTIONAL}]
    if faults:
        return faults
    if not IDENTIFIER.fullmatch(str(entry["id"])) or entry["id"] != folder.name:
        faults.append(
            f"agent.json: id {entry['id']!r} has to be the folder's name, lower case letters, digits and hyphens"
        )
    if not project.SEMVER.fullmatch(str(entry["version"])):
        faults.append(f"agent.json: version {entry['version']!r} is not x.y.z")
    if entry["version"] != version:
        faults.append(f"agent.json: version is {entry['version']}, the package's is {version}")
    return faults + _distribution_faults(entry["distribution"], version)


def _distribution_faults(distribution: dict[str, dict[str, Any]], version: str) -> list[str]:
    if list(distribution) != ["uvx"]:
        return ["agent.json: distribution has to be uvx alone, which is how a Python package is run"]
    how = distribution["uvx"]
    if not set(how) <= {"package", "args", "env"}:
        return ["agent.json: uvx takes package, args and env"]
    faults: list[str] = []
    if how.get("package") != f"punie=={version}":
        faults.append(f"agent.json: package is {how.get('package')!r}, not exactly punie=={version}")
    if how.get("args") != ["acp"]:
        faults.append('agent.json: args have to start the agent: ["acp"]')
    return faults


def icon_faults(icon: Path) -> list[str]:
    """What is wrong with the icon; a sentence each."""
    try:
        root = ET.fromstring(icon.read_text(encoding="utf-8"))  # noqa: S314 - our own file
    except (OSError, ET.ParseError) as error:
        return [f"{icon.name} cannot be read: {error}"]
    faults = [
        f"{icon.name}: {key} is {root.get(key)}, not {wanted}"
        for key, wanted in (("width", ICON_SIZE), ("height", ICON_SIZE), ("viewBox", "0 0 16 16"))
        if root.get(key) != wanted
    ]
    painted: set[str] = set()
    for part in root.iter():
        name = part.tag.rpartition("}")[2]
        if name not in SHAPES:
            faults.append(f"{icon.name}: <{name}> is more than shapes")
        if part.get("style") is not None or part.get("class") is not None:
            faults.append(f"{icon.name}: <{name}> is painted by a style, which the registry does not look into")
        painted |= {value for key, value in part.attrib.items() if key in PAINTS}
    faults += [f"{icon.name}: {paint} is a colour of its own" for paint in sorted(painted - {"currentColor", "none"})]
    if "currentColor" not in painted:
        faults.append(f"{icon.name}: nothing is painted in currentColor")
    return faults


def main() -> int:
    """Check our own folder."""
    faults = entry_faults(FOLDER, project.version()) + icon_faults(FOLDER / "icon.svg")
    for fault in faults:
        print(f"registry: {fault}", file=sys.stderr)
    if not faults:
        print("registry: agent.json and icon.svg keep the ACP registry's rules")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
