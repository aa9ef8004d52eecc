"""The tool `load_skill`: the text of a skill, once the model needs it."""

from __future__ import annotations

from attrs import frozen

from punie.application.tools.built_in import STRING, BuiltInTool, schema
from punie.application.tools.session_tool import CallContext, PreparedCall
from punie.domain.errors import ToolFailedError
from punie.domain.session.prompt_files import SkillText
from punie.domain.tools.roles import Column, Role
from punie.domain.tools.schema import text_argument
from punie.domain.tools.tool import ToolDescriptor, ToolKind, ToolResult
from punie.domain.values.display import one_line
from punie.domain.values.json_value import JsonObject
from punie.ports.tools import CallProgress
from punie.ports.workspace import SkillShelf


@frozen
class LoadSkill(BuiltInTool):
    """Gives a skill's text and the names of its files; a call changes nothing and needs no permission."""

    shelf: SkillShelf
    TALKS = True
    DESCRIPTOR = ToolDescriptor(
        "load_skill",
        ToolKind.READ,
        "Read one of the skills that your instructions list, before you do what it is for.",
        schema({"name": STRING}),
        categories=("session",),
        roles={"name": Role.PLAIN},
        column=Column.READ,
    )

    def title(self, arguments: JsonObject) -> str:
        return f"Loading the skill {one_line(text_argument(arguments, 'name'), 64)}".rstrip()

    async def prepare(self, arguments: JsonObject, context: CallContext) -> PreparedCall:
        name = text_argument(arguments, "name")
        skills = {skill.name: skill for skill in await self.shelf.skills()}
        if name not in skills:
            known = ", ".join(skills) or "none"
            raise ToolFailedError(f"There is no skill named {one_line(name, 80)!r}. The skills are: {known}.")

        async def effect(_progress: CallProgress) -> ToolResult:
            return ToolResult.success(_told(await self.shelf.load(skills[name])))

        return PreparedCall(effect)


def _told(text: SkillText) -> str:
    parts = [f"The skill {text.skill.name}, in {text.skill.folder}:", text.body]
    if text.files:
        more = "\n- and more" if text.more_files else ""
        parts.append("Its files:\n" + "\n".join(f"- {path}" for path in text.files) + more)
    return "\n\n".join(part for part in parts if part)
