"""The doctor's look at the IDEs' own files: whether each starts this installation, and what to switch on there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from punie.commands.doctor.report import Check
from punie.commands.doctor.side_by_side import Case
from punie.commands.setup.ide_entry import COMMAND, agents_in, fields_of
from punie.commands.setup.ide_file import EntryState, FoundEntry, find_entry, read_text
from punie.commands.setup.ides import Ide
from punie.commands.setup.installation import this_installation
from punie.domain.values.jsonc import parse_jsonc

_SWITCHES = {"use_idea_mcp": "Pass IntelliJ MCP server", "use_custom_mcp": "Pass custom MCP servers"}
"""JetBrains' names in its file, and in its dialog."""


def entry_in(ide: Ide) -> Callable[[Case], Sequence[Check]]:
    """The look at that IDE's file."""

    def look(case: Case) -> Sequence[Check]:
        return [_checked(find_entry(ide, case.environ, this_installation()), case)]

    return look


def _switches(found: FoundEntry) -> Iterator[str]:
    """What the file says of what the IDE passes on to us: of our agent, else of all."""
    try:
        text = read_text(found.path)
        root, own = fields_of(parse_jsonc(text)), fields_of(agents_in(text).get(found.name or ""))
    except (OSError, ValueError):  # it changed just now
        return
    for key, label in _SWITCHES.items():
        said = own.get(key, fields_of(root.get("default_mcp_settings")).get(key))
        if isinstance(said, bool):
            yield f'As that file has it, "{label}" is {"on" if said else "OFF"}.'


def _checked(found: FoundEntry, case: Case) -> Check:
    ide, set_up = found.ide, f"punie setup {found.ide.key}"
    detail = f"{found.path}: {found.detail}"
    if found.state is EntryState.BROKEN:
        fix = f"Correct {found.path} by hand; {ide.label} cannot read it either. Then {set_up}."
        return Check(ide.key, ok=False, detail=detail, fix=fix)
    if found.state is EntryState.MISSING:
        return Check(ide.key, ok=True, detail=f"{detail}; {set_up} adds one")
    if found.state is EntryState.OWN:
        steps = (*ide.next_steps(found.name or "", case.environ), *_switches(found))
        return Check(ide.key, ok=True, detail=f"{detail}. {' '.join(steps)}")
    if not found.runs:
        return Check(ide.key, ok=False, detail=detail, fix=f"{set_up} names the program that is here.")
    if found.program is not None and this_installation().starts(found.program, this_installation().args):
        detail = f"{found.path}: the agent {found.name} starts this installation, but not with {COMMAND!r} first"
        return Check(ide.key, ok=False, detail=detail, fix=f"{set_up} writes the right arguments.")
    return Check(ide.key, ok=True, detail=f"{detail}, which is not the Punie of this doctor; {set_up} changes that")
