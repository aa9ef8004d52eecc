"""What the person sent, as the model gets it."""

from __future__ import annotations

import base64
import binascii

from pydantic_ai.messages import BinaryContent, UserContent

from punie.domain.content import Block, EmbeddedResource, Image, Prompt, ResourceLink, Text

_SEEN_BY_MODELS = ("image/", "audio/", "application/pdf")


def user_content(prompt: Prompt) -> str | list[UserContent]:
    """The blocks in order: one text where all of them are text (every server takes that), else a list."""
    parts = [_part(block) for block in prompt.blocks]
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return "\n".join(texts)
    return list(parts)


def picture(image: Image) -> BinaryContent | None:
    """The image's bytes, or None where its data is not base64."""
    return _binary(image.data, image.mime_type)


def encodable(text: str) -> str:
    """The text, with halves of surrogate pairs replaced: they cannot be sent as UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace").decode()
    return text


def _part(block: Block) -> str | BinaryContent:
    match block:
        case Text(text):
            return encodable(text)
        case Image():
            return picture(block) or "[an image whose data could not be read]"
        case ResourceLink():
            # Shown as an address, never fetched: the model may read it with a tool, and that asks leave.
            return encodable(f"[{block.title or block.name}]({block.uri})")
        case EmbeddedResource():
            return _embedded(block)


def _embedded(block: EmbeddedResource) -> str | BinaryContent:
    if block.text is not None:
        return encodable(f'<resource uri="{block.uri}">\n{block.text}\n</resource>')
    mime_type = block.mime_type or ""
    if mime_type.startswith(_SEEN_BY_MODELS) and (data := _binary(block.blob or "", mime_type)) is not None:
        return data
    return encodable(f"[attached: {block.uri}, {mime_type or 'of unknown type'}; its bytes are not shown]")


def _binary(data: str, mime_type: str) -> BinaryContent | None:
    try:
        return BinaryContent(data=base64.b64decode(data, validate=True), media_type=mime_type)
    except (binascii.Error, ValueError):
        return None
