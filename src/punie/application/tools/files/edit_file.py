"""The tool `edit_file`: one exact replacement, or a patch, that leaves everything else of the file as it is."""

from __future__ import annotations

from attrs import frozen

from punie.application.tools.built_in import BOOLEAN, STRING, BuiltInTool, details, optional, schema
from punie.application.tools.files.file_memory import ServedFiles, path_of, require_unchanged, text_or_none
from punie.application.tools.files.patching import apply_patch
from punie.application.tools.session_tool import CallContext, PreparedCall
from punie.domain.errors import ArgumentsRefusedError, ToolFailedError
from punie.domain.tools.catalog import Serving
from punie.domain.tools.metadata import Capability, Permission
from punie.domain.tools.roles import Change, Column, Role
from punie.domain.tools.schema import flag_argument, text_argument
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.content import Diff
from punie.domain.values.file_kind import looks_binary
from punie.domain.values.json_value import JsonObject
from punie.ports.tools import CallProgress


@frozen
class EditFile(BuiltInTool):
    """Replaces one exact piece of a file, or every occurrence of it, or applies a unified diff.

    Line ends, a byte order mark and every byte that is not edited stay. Where the client turned the file's bytes into
    text, a text with U+FFFD is refused, since writing it would lose bytes.
    """

    files: ServedFiles
    SERVING = Serving.BY_CLIENT | Serving.BY_MACHINE
    NEEDS = (ServedFiles,)
    TITLE = "Editing {path}"
    DENIAL = "edit {path}"
    DESCRIPTOR = ToolDescriptor(
        "edit_file",
        ToolKind.EDIT,
        "Replace old_text, which must occur exactly once unless replace_all is true, by new_text in a file; or apply "
        "a patch.",
        schema(
            {"path": STRING},
            {
                "old_text": optional("string"),
                "new_text": optional("string"),
                "replace_all": BOOLEAN,
                "patch": optional("string", "unified diff, instead"),
            },
        ),
        categories=("file",),
        roles={
            "path": Role.PATH_WRITE,
            "old_text": Role.OLD_TEXT,
            "new_text": Role.NEW_TEXT,
            "replace_all": Role.PLAIN,
            "patch": Role.PATCH,
        },
        column=Column.EDIT,
        details=details(
            Capability.READ_FILES | Capability.WRITE_FILES,
            Permission.READ | Permission.WRITE,
            ({"path": "src/app.py", "old_text": "x = 1", "new_text": "x = 2"}, "one exact piece"),
        ),
    )

    def file_bytes(self, arguments: JsonObject, context: CallContext) -> int | None:
        return self.files.memory.size_bytes(path_of(context)) if context.locations else None

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        path, workspace, memory = path_of(context), self.files.workspace, self.files.memory
        change = self.DESCRIPTOR.roles.change(arguments)
        _require_one_form(change)
        before = await workspace.read_text(path)
        memory.check(path, before)
        self._require_whole(path, before)
        after, said = _patched(before, change.patch) if change.patch else _replaced(before, change, arguments)
        diff = Diff(path, before, after)

        async def effect(_progress: CallProgress) -> ToolResult:
            async with memory.alone(path):
                require_unchanged(path, before, await text_or_none(workspace, path))
                await workspace.write_text(path, after)
                memory.remember(path, after)
            return ToolResult.success(
                f"Successfully edited {text_argument(arguments, 'path')} ({said[1]} {said[0]})",
                content=(diff,),
                structured={"path": path, said[0]: said[1]},
            )

        return PreparedCall(effect, (diff,))

    def _require_whole(self, path: str, before: str) -> None:
        if self.files.decoded_elsewhere and ("\ufffd" in before or looks_binary(before)):
            raise ToolFailedError(
                f"{path} holds bytes that the client could not decode, and writing it would lose them, so it was not "
                "edited. Use run_command with a program that keeps them (sed), or ask the user to convert it to UTF-8."
            )


def _require_one_form(change: Change) -> None:
    texts = {"old_text": change.old_text, "new_text": change.new_text}
    if change.patch:
        if any(texts.values()):
            raise ArgumentsRefusedError("edit_file", ("patch: expected either patch, or old_text and new_text",))
        return
    missing = [name for name, text in texts.items() if text is None]
    if missing:
        raise ArgumentsRefusedError("edit_file", tuple(f"{name}: required unless patch is given" for name in missing))


def _patched(before: str, patch: str) -> tuple[str, tuple[str, int]]:
    if _uniform_windows(before):
        after, hunks = apply_patch(before.replace("\r\n", "\n"), patch.replace("\r\n", "\n"))
        after = after.replace("\n", "\r\n")
    else:
        after, hunks = apply_patch(before, patch)
    if after == before:
        raise ToolFailedError("The patch changes nothing.")
    return after, ("hunks", hunks)


def _replaced(before: str, change: Change, arguments: JsonObject) -> tuple[str, tuple[str, int]]:
    path = text_argument(arguments, "path")
    old, new = change.old_text or "", change.new_text or ""
    if not old:
        raise ToolFailedError("old_text is empty. Give the text to replace, or use write_file for the whole content.")
    if _uniform_windows(before):
        old, new = _windows(old), _windows(new)
    if old == new:
        raise ToolFailedError("old_text and new_text are the same, so there is nothing to change.")
    count = before.count(old)
    if count == 0:
        raise ToolFailedError(f"old_text does not occur in {path}. Read the file and copy the text exactly.")
    if count > 1 and not flag_argument(arguments, "replace_all"):
        raise ToolFailedError(
            f"old_text occurs {count} times in {path}. Give more of the text around it, or set replace_all."
        )
    return before.replace(old, new), ("replaced", count)


def _uniform_windows(text: str) -> bool:
    """Whether every line ends with CR LF; the new text gets the same ends then, however the model wrote it."""
    return "\r\n" in text and text.count("\n") == text.count("\r\n")


def _windows(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\n", "\r\n")
