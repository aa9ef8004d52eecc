"""Dynamic tool discovery, from the catalogue's queries to a session whose agent works with the IDE's own tools.

Run it: `python examples/09_dynamic_tool_discovery.py`. It needs no key and no network: a script stands for the model.
"""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import anyio

from punie.api import PLANNABLE, CatalogAnswer, ClientCapabilities, ToolCatalog, ToolDescriptor, plan_tools
from punie_ide.local import open_local_ide, punie_command
from punie_ide.project.toolset import PROJECT_TOOLS

SCRIPT = {
    "turns": [
        [{"tools": True}],
        [{"call": {"name": "list_symbols", "arguments": {"path": "."}}}, {"text": "I found: "}, {"result": True}],
    ]
}


def catalog_of_the_ide() -> ToolCatalog:
    """What an IDE answers to discovery, as the domain's catalogue."""
    entries = [tool.encode() for tool in PROJECT_TOOLS]
    return ToolCatalog(
        ToolDescriptor(
            name=entry["name"],
            kind=entry["kind"],
            description=entry["description"],
            parameters=entry["inputSchema"],
            requires_permission=entry.get("requiresPermission", False),
            categories=entry.get("categories", ()),
        )
        for entry in entries
    )


def show_queries(catalog: ToolCatalog) -> None:
    """Ask the catalogue by name, by kind and by category."""
    print("Catalogue queries")
    rename = catalog.by_name("rename_symbol")
    assert rename is not None  # noqa: S101 - the demo's IDE has it
    print(f"  by_name('rename_symbol'):   {rename.kind.value}, asks leave: {rename.requires_permission}")
    print(f"  by_kind('search'):          {', '.join(tool.name for tool in catalog.by_kind('search'))}")
    print(f"  by_category('navigation'):  {', '.join(tool.name for tool in catalog.by_category('navigation'))}")


def show_tiers(catalog: ToolCatalog) -> None:
    """The toolset that each of the three tiers builds."""
    with_files = ClientCapabilities(read_text_file=True, write_text_file=True)
    print("Toolset by tier")
    for capabilities, answer in (
        (with_files, CatalogAnswer(catalog)),
        (with_files, None),
        (ClientCapabilities(), None),
    ):
        plan = plan_tools(capabilities, answer, own=PLANNABLE)
        names = (*plan.catalog.names, *(tool.name for tool in plan.built_ins))
        print(f"  {plan.tier.value}: {', '.join(names)}")


async def show_session(project: Path) -> None:
    """A real agent process: it discovers the tools, the model is offered exactly those, and uses one."""
    script = project / "script.json"
    script.write_text(json.dumps(SCRIPT), encoding="utf-8")
    (project / "shop.py").write_text("def total() -> int:\n    return 0\n", encoding="utf-8")
    env = {**os.environ, "PUNIE_HOME": str(project / "punie-home")}
    agent = punie_command(f"script:{script}")
    async with open_local_ide(str(project), agent=agent, tools=PROJECT_TOOLS, env=env) as ide:
        session = await ide.new_session(str(project))
        offered = json.loads((await session.prompt("Which tools do you have?")).text)
        print(f"Toolset built in the session (tier {session.discovery['tier']})")
        for tool in offered:
            print(f"  {tool['name']}: {', '.join(tool['inputSchema'].get('properties', {}))}")
        turn = await session.prompt("What is defined here?")
        print(f"The agent used {', '.join(turn.tools_used)} and said: {turn.text.strip()}")


def main() -> None:
    """All three parts."""
    catalog = catalog_of_the_ide()
    show_queries(catalog)
    show_tiers(catalog)
    with tempfile.TemporaryDirectory() as folder:
        anyio.run(show_session, Path(folder).resolve())


if __name__ == "__main__":
    main()
