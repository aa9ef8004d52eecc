"""One call once its tool was found, and what is checked of it before anybody is asked (S2-04, S2-08, S2-50)."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from punie.application.tools.session_tool import CallContext, PreparedCall, SessionTool
from punie.domain.errors import ArgumentsRefusedError, LimitExceededError, ToldToModel
from punie.domain.permission.decisions import Decision
from punie.domain.permission.modes import Verdict
from punie.domain.tools.limits import CallLimits
from punie.domain.tools.tool import ToolCall, ToolResult
from punie.domain.values.json_value import JsonObject, json_type, utf8_size
from punie.ports.tools import ArgumentValidator, CallProgress


@frozen
class CallRequest:
    """A call on its way through the desk; `arguments` is empty where the model wrote no object."""

    call: ToolCall
    tool: SessionTool
    arguments: JsonObject
    arguments_json: str
    context: CallContext
    limits: CallLimits

    def check_arguments(self, validator: ArgumentValidator) -> None:
        """Raises `LimitExceededError` or `ArgumentsRefusedError`, which name what is wrong; has no effect."""
        name = self.call.name
        declared = self.tool.descriptor.details.max_input_bytes
        limit = self.limits.input_bytes if declared is None else min(declared, self.limits.input_bytes)
        size = utf8_size(self.arguments_json)
        if size > limit:
            raise LimitExceededError(name, f"its arguments are {size} bytes, the limit is {limit}. Send less at once")
        if not isinstance(self.call.arguments, Mapping):
            raise ArgumentsRefusedError(name, (f"expected a JSON object, got {json_type(self.call.arguments)}",))
        problems = validator.problems(self.tool.descriptor.parameters, self.arguments)
        if problems:
            raise ArgumentsRefusedError(name, problems)

    def check_resources(self) -> None:
        """Raises `LimitExceededError` where the call touches more than it may."""
        count, limit = len(self.context.locations), self.limits.files_touched
        if count > limit:
            raise LimitExceededError(
                self.call.name, f"it names {count} paths, the limit is {limit} a call. Do it in parts"
            )

    async def prepared(self, decision: Decision) -> PreparedCall:
        """The call, ready to run. What goes wrong with a secret tells of its content: only who may read it hears it."""
        try:
            return await self.tool.prepare(self.arguments, self.context)
        except ToldToModel as error:
            if decision.verdict is Verdict.ALLOW or not any(where.secret for where in self.context.locations):
                raise
            refusal = error

        async def effect(_progress: CallProgress) -> ToolResult:
            raise refusal

        return PreparedCall(effect)
