"""Content blocks from and to the wire; ACP and MCP share their form."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Raw

from punie.domain.values.content import (
    Block,
    Diff,
    EmbeddedResource,
    Image,
    ResourceLink,
    ResultContent,
    TerminalView,
    Text,
)


class BlockError(ValueError):
    """A content block cannot be used; the message names the field and never repeats the sender's value."""


class _Tag(msgspec.Struct):
    type: str


class _Image(msgspec.Struct, rename="camel"):
    data: str
    mime_type: str
    uri: str | None = None


class _Link(msgspec.Struct, rename="camel"):
    uri: str
    name: str
    description: str | None = None
    mime_type: str | None = None
    title: str | None = None


class _Contents(msgspec.Struct, rename="camel"):
    uri: str
    text: str | None = None
    blob: str | None = None
    mime_type: str | None = None


class _Resource(msgspec.Struct):
    resource: _Contents


def decode_block(raw: Raw) -> Block:
    """One content block. Raises `BlockError` for a kind that was not advertised and for a field that does not fit."""
    try:
        tag = msgspec.json.decode(raw, type=_Tag).type
        return _decode(tag, raw)
    except msgspec.DecodeError as error:
        raise BlockError(f"a content block cannot be read: {error}") from error
    except RecursionError as error:
        raise BlockError("a content block nests too deeply") from error


def _decode(tag: str, raw: Raw) -> Block:
    if tag == "text":
        return msgspec.json.decode(raw, type=Text)
    if tag == "resource_link":
        link = msgspec.json.decode(raw, type=_Link)
        return ResourceLink(link.uri, link.name, link.description, link.mime_type, link.title)
    if tag == "image":
        image = msgspec.json.decode(raw, type=_Image)
        return Image(image.data, image.mime_type, image.uri)
    if tag == "resource":
        inner = msgspec.json.decode(raw, type=_Resource).resource
        if (inner.text is None) == (inner.blob is None):
            raise BlockError("an embedded resource needs either text or blob")
        return EmbeddedResource(inner.uri, inner.text, inner.blob, inner.mime_type)
    raise BlockError("a content block of a kind that this agent did not advertise; it takes text, resource_link, image "
                     "and resource")  # fmt: skip


def encode_block(block: Block) -> dict[str, object]:
    """The wire form of one content block."""
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(data, mime_type, uri):
            return {"type": "image", "data": data, "mimeType": mime_type, **present(uri=uri)}
        case ResourceLink():
            optional = present(description=block.description, mimeType=block.mime_type, title=block.title)
            return {"type": "resource_link", "uri": block.uri, "name": block.name, **optional}
        case EmbeddedResource():
            inner = present(text=block.text, blob=block.blob, mimeType=block.mime_type)
            return {"type": "resource", "resource": {"uri": block.uri, **inner}}


def encode_result_content(content: ResultContent) -> dict[str, object]:
    """The wire form of one piece of a tool call's content (ACP: content, diff or terminal)."""
    match content:
        case Diff(path, old_text, new_text):
            return {"type": "diff", "path": path, "oldText": old_text, "newText": new_text}
        case TerminalView(terminal_id):
            return {"type": "terminal", "terminalId": terminal_id}
        case _:
            return {"type": "content", "content": encode_block(content)}


def present(**fields: object) -> Mapping[str, object]:
    """The members of an object that are there: ACP leaves out the others."""
    return {key: value for key, value in fields.items() if value is not None}
