"""Everything that a release has to pass, in one run that uploads nothing: `make release`.

Every step is tried, so that one run tells all that is missing; only what needs the wheel is left out where there is
none. Leaves in dist/ the wheel, the sdist, their sums, the bill of materials and the notes. Exit code 0 when all
passed, 1 when a step failed, 3 when only the audit could not look everything up.
"""

from __future__ import annotations

import sys
from collections.abc import Callable

from tools.release import audit, build, extras, install, licences, project, registry, sbom
from tools.release.project import ROOT, ReleaseError

Step = Callable[[], int]


def clean() -> int:
    """What is released is what is committed."""
    left_out = project.changed()
    for line in left_out[:20]:
        print(f"tree: not committed: {line}", file=sys.stderr)
    return 1 if left_out else 0


def notes() -> int:
    """The changelog's section of this version, for the page of the release."""
    version = project.version()
    try:
        text = project.notes((ROOT / "CHANGELOG.md").read_text(encoding="utf-8"), version)
    except ReleaseError as error:
        print(f"notes: {error}", file=sys.stderr)
        return 1
    build.DIST.mkdir(exist_ok=True)
    (build.DIST / "NOTES.md").write_text(text, encoding="utf-8")
    print(f"notes: dist/NOTES.md, {len(text.splitlines())} lines")
    return 0


STEPS: dict[str, Step] = {
    "tree": clean,
    "licences": lambda: licences.main([]),
    "registry": registry.main,
    "build": build.main,
    "notes": notes,
    "install": lambda: install.main(sys.argv[1:]),
    "extras": extras.main,
    "sbom": sbom.main,
    "audit": lambda: audit.main([]),
}
NEEDS_WHEEL = {"install"}


def release(steps: dict[str, Step]) -> int:
    """Run them in their order; the exit code."""
    codes: dict[str, int] = {}
    for name, step in steps.items():
        if name in NEEDS_WHEEL and codes.get("build"):
            print(f"{name}: left out, there is no wheel", file=sys.stderr)
            codes[name] = 1
            continue
        try:
            codes[name] = step()
        except ReleaseError as error:
            print(f"{name}: {error}", file=sys.stderr)
            codes[name] = 1
    failed = [name for name, code in codes.items() if code not in {0, audit.NOT_LOOKED_UP}]
    unknown = [name for name, code in codes.items() if code == audit.NOT_LOOKED_UP]
    if failed:
        print(f"release: NOT READY: {', '.join(failed + unknown)}", file=sys.stderr)
        return 1
    if unknown:
        print("release: ready but for the audit, which could not look everything up", file=sys.stderr)
        return audit.NOT_LOOKED_UP
    print("release: everything passed; nothing was uploaded (docs/release.md says how)")
    return 0


if __name__ == "__main__":
    sys.exit(release(STEPS))
