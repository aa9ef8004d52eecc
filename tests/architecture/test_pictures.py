"""The pictures of README show what is true: drawn from the record of a run, and of rooms that exist."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.architecture.source_tree import ROOT
from tools import picture

SVG = "{http://www.w3.org/2000/svg}"
PICTURES = sorted((ROOT / "docs/pictures").glob("*.svg"))


def test_the_session_is_drawn_from_its_record():
    assert list(picture.stale(picture.kept())) == [], "run `make picture`"


def test_a_picture_of_another_record_is_noticed(tmp_path: Path):
    for name, make in picture.FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(make(picture.kept()), encoding="utf-8")
    assert list(picture.stale(picture.kept(), tmp_path)) == []
    assert list(picture.stale(picture.kept()[:-1], tmp_path)) == [picture.RECORD, picture.PICTURE]


def test_the_rooms_of_the_architecture_exist():
    svg = ET.fromstring((ROOT / "docs/pictures/architecture.svg").read_text("utf-8"))  # noqa: S314 - our own file
    rooms = [str(text.text) for text in svg.iter(f"{SVG}text") if text.get("class") == "m"]
    assert len(rooms) == 7
    missing = [room for room in rooms if not any((ROOT / f"src/punie/{room}{end}").exists() for end in ("", ".py"))]
    assert missing == []


@pytest.mark.parametrize("file", PICTURES, ids=[file.name for file in PICTURES])
def test_a_picture_is_text_in_both_colours_and_loads_nothing(file: Path):
    text = file.read_text("utf-8")
    svg = ET.fromstring(text)  # noqa: S314 - our own file
    assert svg.find(f"{SVG}title") is not None
    assert len(list(svg.iter(f"{SVG}text"))) > 10
    assert "prefers-color-scheme:dark" in text
    assert not re.search(
        r"https?:(?!//www\.w3\.org/2000/svg)|<(script|image|use|foreignObject)|@import|url\((?!#)", text
    )
    assert not re.search(r"/(tmp|home|work|Users)/", text)
