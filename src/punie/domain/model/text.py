"""Prompts and results as the text that a model reads, and calls as models write them; the same for every engine."""

from __future__ import annotations

import json
from typing import NoReturn

from punie.domain.tools.tool import ToolCall, ToolResult
from punie.domain.values.content import EmbeddedResource, ResourceLink
from punie.domain.values.json_value import NotJsonError, thaw

NO_PICTURE = "[an image whose data could not be read]"

NO_ANSWER = "[No answer came of this.]"
"""What stands between a prompt that nothing came of and the next one: some providers take no two in a row."""


def encodable(text: str) -> str:
    """The text, with halves of surrogate pairs replaced: they cannot be sent as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def link_text(link: ResourceLink) -> str:
    """A link as an address, never fetched: the model may read it with a tool, and that asks leave."""
    return encodable(f"[{link.title or link.name}]({link.uri})")


def resource_text(resource: EmbeddedResource) -> str:
    """A resource that came along, with its text; of one that has none that it is there."""
    if resource.text is not None:
        return encodable(f'<resource uri="{resource.uri}">\n{resource.text}\n</resource>')
    of_type = resource.mime_type or "of unknown type"
    return encodable(f"[attached: {resource.uri}, {of_type}; its bytes are not shown]")


def result_text(result: ToolResult) -> str:
    """What the model reads of a call's result; never empty."""
    if result.text:
        return encodable(result.text)
    said = [_linked(block) for block in result.content if isinstance(block, (EmbeddedResource, ResourceLink))]
    if said:
        return encodable("\n".join(said))
    if result.structured is not None:
        return encodable(json.dumps(thaw(result.structured), ensure_ascii=False))
    return "Done; there is no output." if result.succeeded else f"The tool failed ({result.code or 'no reason given'})."


def read_arguments(written: str) -> object:
    """The JSON value that a model wrote as a call's arguments, or the text itself where it is none."""
    try:
        return json.loads(written, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return written


def called(call_id: str, name: str, arguments: object) -> ToolCall:
    """The call as the desk gets it, whatever the model wrote."""
    try:
        return ToolCall(call_id, name, arguments)  # a converter of it freezes them
    except NotJsonError as error:
        return ToolCall(call_id, name, f"arguments that cannot be used: {error}")


def _linked(block: EmbeddedResource | ResourceLink) -> str:
    return (block.text or block.uri) if isinstance(block, EmbeddedResource) else block.uri


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")
