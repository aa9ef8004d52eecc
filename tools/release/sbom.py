"""The software bill of materials of what `pip install punie` brings: CycloneDX in JSON, the same bytes each time.

cyclonedx-py reads the runtime lock; to that come what the lock does not say and the installed packages do: who needs
whom, and the licences. No serial number and no time: the same commit, installed packages and tools give the same file.
The result is validated against CycloneDX's own schema.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

from tools.release import licences, project
from tools.release.project import ROOT, ReleaseError

LOCK = Path("requirements/runtime.txt")
DIST = ROOT / "dist"
SPECIFICATION = "1.6"
LISTING = ("--output-reproducible", "--spec-version", SPECIFICATION)
NEED = re.compile(r"^([A-Za-z0-9._-]+)\s*(?:\[([^\]]*)\])?[^;]*(?:;(.*))?$")
EXTRA = re.compile(r"""extra\s*==\s*['"]([^'"]+)['"]""")


def normal(name: str) -> str:
    """A package's name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def needs(requirements: Iterable[str], extras: Iterable[str] = ()) -> dict[str, set[str]]:
    """What is needed, with the extras that are asked of it; needs of extras that nobody asked for are left out."""
    asked, found = set(extras), dict[str, set[str]]()
    for line in requirements:
        parts = NEED.match(line)
        if parts is None:
            continue
        only_for = set(EXTRA.findall(parts[3] or ""))
        if not only_for or only_for & asked:
            found.setdefault(normal(parts[1]), set()).update(
                extra.strip() for extra in (parts[2] or "").split(",") if extra.strip()
            )
    return found


def graph(root_needs: Mapping[str, set[str]], known: Iterable[str]) -> dict[str, set[str]]:
    """Of each known package that is reached from the root, the known ones that it needs, whatever the platform.

    A package that is not installed here (another platform's) says nothing, and has no needs.
    """
    names, edges, extras = set(known), dict[str, set[str]](), dict[str, set[str]]()
    waiting = [(name, asked) for name, asked in root_needs.items() if name in names]
    while waiting:
        name, asked = waiting.pop()
        if name in edges and asked <= extras[name]:
            continue
        extras[name] = extras.get(name, set()) | asked
        try:
            found = needs(metadata.requires(name) or (), extras[name])
        except metadata.PackageNotFoundError:
            found = {}
        edges[name] = found.keys() & names
        waiting += [(other, found[other]) for other in edges[name]]
    return edges


def completed(bom: Mapping[str, Any], version: str, about: Mapping[str, Any], rules: licences.Policy) -> dict[str, Any]:
    """The same bill with licences and dependencies; `about` is the table `project` of pyproject.toml."""
    root = f"pkg:pypi/punie@{version}"
    components = sorted((_component(part, rules) for part in bom["components"]), key=lambda part: part["purl"])
    names = {normal(part["name"]): part["bom-ref"] for part in components}
    direct = needs(about["dependencies"])
    edges = {root: direct.keys() & names.keys()}
    edges |= {names[name]: found for name, found in graph(direct, names).items()}
    main = {
        "type": "application",
        "bom-ref": root,
        "name": "punie",
        "version": version,
        "purl": root,
        "description": about["description"],
        "licenses": [{"license": {"id": about["license"]}}],
    }
    return {
        "bomFormat": "CycloneDX",
        "specVersion": SPECIFICATION,
        "version": 1,
        "metadata": {**bom["metadata"], "component": main},
        "components": components,
        "dependencies": [
            {"ref": ref, "dependsOn": sorted(names[name] for name in edges.get(ref, set()))}
            for ref in [root, *(part["bom-ref"] for part in components)]
        ],
    }


def _component(part: Mapping[str, Any], rules: licences.Policy) -> dict[str, Any]:
    """One package: the line of the lock that describes it goes, but for its condition; its licence comes."""
    condition = re.search(r" ; (.*?)\s+--hash", str(part.get("description", "")))
    licence = licences.licence_of(normal(part["name"]), rules)
    done = {key: part[key] for key in ("type", "name", "version", "purl", "externalReferences") if key in part}
    done["bom-ref"] = part["purl"]
    if licence:
        simple = re.fullmatch(r"[A-Za-z0-9.+-]+", licence)
        done["licenses"] = [{"license": _named(licence)}] if simple else [{"expression": licence}]
    if condition:
        done["properties"] = [{"name": "punie:marker", "value": condition[1].strip()}]
    return done


def _named(licence: str) -> dict[str, str]:
    return {"name": "a BSD licence"} if licence == "BSD" else {"id": licence}


def made(root: Path = ROOT) -> str:
    """The whole file. Raises `ReleaseError` where a tool fails or the result is not CycloneDX."""
    listed = _said(project.tool("cyclonedx_py", "requirements", str(root / LOCK), *LISTING))
    pyproject = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    bom = completed(json.loads(listed), project.version(root), pyproject, licences.policy())
    text = json.dumps(bom, indent=2, sort_keys=True) + "\n"
    _said([*project.tool("tools.release.cyclonedx"), SPECIFICATION], text)
    return text


def _said(command: list[str], given: str | None = None) -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, cwd=ROOT)
    if done.returncode != 0:
        raise ReleaseError(f"{command[2]} failed: {done.stderr.strip()[-1000:]}")
    return done.stdout


def main() -> int:
    """Write the file into dist/."""
    try:
        text = made()
    except ReleaseError as error:
        print(f"sbom: {error}", file=sys.stderr)
        return 1
    DIST.mkdir(exist_ok=True)
    path = DIST / f"punie-{project.version()}.cdx.json"
    path.write_text(text, encoding="utf-8")
    print(f"sbom: dist/{path.name}  {len(json.loads(text)['components'])} packages")
    return 0


if __name__ == "__main__":
    sys.exit(main())
