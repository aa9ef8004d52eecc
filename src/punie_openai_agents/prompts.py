"""What the person sent, as the SDK takes it."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterable

from punie.api import (
    NO_PICTURE,
    Block,
    EmbeddedResource,
    Image,
    Prompt,
    ResourceLink,
    Text,
    encodable,
    link_text,
    resource_text,
)
from punie_openai_agents.items import Item


def user_content(prompt: Prompt) -> str | list[Item]:
    """The blocks in order: one text where all of them are text (every server takes that), else a list."""
    parts = [_part(block) for block in prompt.blocks]
    texts = [part for part in parts if isinstance(part, str)]
    if len(texts) == len(parts):
        return "\n".join(texts)
    return [text_part(part) if isinstance(part, str) else part for part in parts]


def text_part(text: str) -> Item:
    """A piece of text among others."""
    return {"type": "input_text", "text": text}


def pictures(images: Iterable[Image]) -> list[Item]:
    """Those of the images whose data can be read."""
    return [part for image in images if (part := _picture(image.data, image.mime_type)) is not None]


def _part(block: Block) -> str | Item:
    match block:
        case Text(text):
            return encodable(text)
        case Image(data, mime_type):
            return _picture(data, mime_type) or NO_PICTURE
        case ResourceLink():
            return link_text(block)
        case EmbeddedResource():
            return _embedded(block)


def _embedded(block: EmbeddedResource) -> str | Item:
    mime_type, data = block.mime_type or "", block.blob or ""
    shown: Item | None = None
    if block.text is None and mime_type.startswith("image/"):
        shown = _picture(data, mime_type)
    elif block.text is None and mime_type == "application/pdf" and _is_base64(data):
        name = block.uri.rpartition("/")[2] or "attached.pdf"
        shown = {"type": "input_file", "filename": encodable(name), "file_data": f"data:{mime_type};base64,{data}"}
    return resource_text(block) if shown is None else shown


def _picture(data: str, mime_type: str) -> Item | None:
    if not _is_base64(data):
        return None
    return {"type": "input_image", "image_url": f"data:{mime_type};base64,{data}", "detail": "auto"}


def _is_base64(data: str) -> bool:
    try:
        return bool(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return False
