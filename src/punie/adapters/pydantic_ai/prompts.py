"""What the person sent, as the library takes it."""

from __future__ import annotations

import base64
import binascii

from pydantic_ai.messages import BinaryContent, UserContent

from punie.domain.model.text import NO_PICTURE, encodable, link_text, resource_text
from punie.domain.values.content import Block, EmbeddedResource, Image, Prompt, ResourceLink, Text

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


def _part(block: Block) -> str | BinaryContent:
    match block:
        case Text(text):
            return encodable(text)
        case Image():
            return picture(block) or NO_PICTURE
        case ResourceLink():
            return link_text(block)
        case EmbeddedResource():
            return _embedded(block)


def _embedded(block: EmbeddedResource) -> str | BinaryContent:
    mime_type = block.mime_type or ""
    if block.text is None and mime_type.startswith(_SEEN_BY_MODELS):
        data = _binary(block.blob or "", mime_type)
        if data is not None:
            return data
    return resource_text(block)


def _binary(data: str, mime_type: str) -> BinaryContent | None:
    try:
        return BinaryContent(data=base64.b64decode(data, validate=True), media_type=mime_type)
    except (binascii.Error, ValueError):
        return None
