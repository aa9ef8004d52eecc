"""read_file, write_file and edit_file, over whichever workspace the plan names (S1, R-01)."""

from __future__ import annotations

from attrs import frozen

from punie.application.session_tool import CallContext, PreparedCall, flag_argument, text_argument, whole_argument
from punie.application.tools.built_in import BOOLEAN, STRING, BuiltInTool, optional, schema
from punie.domain.content import Diff
from punie.domain.errors import ToldToModel, ToolFailedError
from punie.domain.json_value import JsonObject
from punie.domain.tool import ToolDescriptor, ToolKind, ToolResult
from punie.ports.tool_executor import CallProgress
from punie.ports.workspace import Workspace


@frozen
class ReadFile(BuiltInTool):
    """Reads a text file, whole or a range of lines."""

    workspace: Workspace
    DESCRIPTOR = ToolDescriptor(
        "read_file",
        ToolKind.READ,
        "Read a text file.",
        schema(
            {"path": STRING},
            {"line": optional("integer", "first line, from 1", minimum=1), "limit": optional("integer", minimum=1)},
        ),
        categories=("file",),
    )

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        path = _path(context)

        async def effect(_progress: CallProgress) -> ToolResult:
            text = await self.workspace.read_text(
                path, line_1based=whole_argument(arguments, "line"), limit_lines=whole_argument(arguments, "limit")
            )
            return ToolResult.success(text)

        return PreparedCall(effect)


@frozen
class WriteFile(BuiltInTool):
    """Makes a file hold exactly the given content. `before` reads what it held, for the diff; None: not to be had."""

    workspace: Workspace
    before: Workspace | None
    DESCRIPTOR = ToolDescriptor(
        "write_file",
        ToolKind.EDIT,
        "Create a file or replace all of its content.",
        schema({"path": STRING, "content": STRING}),
        categories=("file",),
    )

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        path, content = _path(context), text_argument(arguments, "content")
        diff = Diff(path, await self._old_text(path), content)

        async def effect(_progress: CallProgress) -> ToolResult:
            await self.workspace.write_text(path, content)
            return ToolResult.success(
                f"Successfully wrote to {text_argument(arguments, 'path')}", content=(diff,), structured={"path": path}
            )

        return PreparedCall(effect, (diff,))

    async def _old_text(self, path: str) -> str | None:
        if self.before is None:
            return None
        try:
            return await self.before.read_text(path)
        except ToldToModel:
            # No such file yet, or one that is no text: the question shows the new text as all there is to see.
            return None


@frozen
class EditFile(BuiltInTool):
    """Replaces one exact piece of a file, or every occurrence of it."""

    workspace: Workspace
    DESCRIPTOR = ToolDescriptor(
        "edit_file",
        ToolKind.EDIT,
        "Replace old_text, which must occur exactly once unless replace_all is true, by new_text in a file.",
        schema({"path": STRING, "old_text": STRING, "new_text": STRING}, {"replace_all": BOOLEAN}),
        categories=("file",),
    )

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        path = _path(context)
        before = await self.workspace.read_text(path)
        after, count = _replaced(before, arguments)
        diff = Diff(path, before, after)

        async def effect(_progress: CallProgress) -> ToolResult:
            if await self.workspace.read_text(path) != before:
                raise ToolFailedError(
                    f"{path} changed after this edit was prepared, so nothing was written. Read it and edit again."
                )
            await self.workspace.write_text(path, after)
            return ToolResult.success(
                f"Successfully edited {text_argument(arguments, 'path')} ({count} replaced)",
                content=(diff,),
                structured={"path": path, "replaced": count},
            )

        return PreparedCall(effect, (diff,))


def _path(context: CallContext) -> str:
    if not context.locations:
        raise ToolFailedError("path is empty. Give the path of a file.")
    return context.locations[0].path


def _replaced(before: str, arguments: JsonObject) -> tuple[str, int]:
    path, old = text_argument(arguments, "path"), text_argument(arguments, "old_text")
    new = text_argument(arguments, "new_text")
    if not old:
        raise ToolFailedError("old_text is empty. Give the text to replace, or use write_file for the whole content.")
    if old == new:
        raise ToolFailedError("old_text and new_text are the same, so there is nothing to change.")
    count = before.count(old)
    if count == 0:
        raise ToolFailedError(f"old_text does not occur in {path}. Read the file and copy the text exactly.")
    if count > 1 and not flag_argument(arguments, "replace_all"):
        raise ToolFailedError(
            f"old_text occurs {count} times in {path}. Give more of the text around it, or set replace_all."
        )
    return before.replace(old, new), count
