"""A tool: it counts the lines and words of a file, reading through the session's own workspace.

Run it: `python examples/counting_tool.py`. It is registered by its type, made when it is first called, and its call
goes through the desk: a path outside the session's directory is refused before the tool hears of it.
"""

from __future__ import annotations

from pathlib import Path

import anyio

from punie import api

HERE = Path(__file__).resolve()


class CountWords(api.TypedTool):
    """Takes what it needs from the session's services, and nothing else."""

    DESCRIPTOR = api.ToolDescriptor(
        "count_words",
        "read",
        "Count a file's lines and words.",
        [api.ToolParameter("path", "string", required=True)],
        source=api.ToolSource.PLUG_IN,
    )

    def paths(self, arguments: api.JsonObject) -> tuple[str, ...]:
        return (api.text_argument(arguments, "path"),)

    async def prepare(self, arguments: api.JsonObject, context: api.CallContext) -> api.PreparedCall:
        async def effect(_progress: api.CallProgress) -> api.ToolResult:
            text = await self.services.get(api.Workspace).read_text(context.locations[0].path)
            lines, words = len(text.splitlines()), len(text.split())
            return api.ToolResult.success(f"{lines} lines, {words} words", structured={"lines": lines, "words": words})

        return api.PreparedCall(effect)


async def main() -> None:
    """Count this file, a missing one, and one that is none of the session's business."""
    async with api.open_session_here(str(HERE.parent)) as session:
        session.registry.register_type(CountWords)
        for path in (HERE.name, "no-such-file.txt", "../pyproject.toml"):
            result = await session.call("count_words", {"path": path})
            print(f"{path}: {result.outcome}: {result.text}")


if __name__ == "__main__":
    anyio.run(main)
