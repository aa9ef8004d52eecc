"""A picture of a terminal's screen, as SVG."""

from __future__ import annotations

from html import escape
from itertools import groupby
from typing import Final

from tests.e2e.screen import Screen, Style

CELL_WIDTH: Final = 8.4
CELL_HEIGHT: Final = 18
EDGE: Final = 12
FRONT: Final = "#d8dee9"
BACK: Final = "#1b1f27"
PALETTE: Final = (
    "#3b4252", "#e06c75", "#98c379", "#e5c07b", "#61afef", "#c678dd", "#56b6c2", "#d8dee9",
    "#6b7280", "#ff7b86", "#b5e890", "#ffd68a", "#82c4ff", "#dd93f2", "#6fd6e2", "#ffffff",
)  # fmt: skip
_STEPS: Final = (0, 95, 135, 175, 215, 255)


def svg_of(screen: Screen) -> str:
    """The screen as one SVG document that needs nothing but a monospaced font; the cursor is a frame."""
    width, height = screen.columns * CELL_WIDTH + 2 * EDGE, screen.rows * CELL_HEIGHT + 2 * EDGE
    shown: list[str] = []
    for number, row in enumerate(screen.cells):
        at = 0
        for style, group in groupby(row, lambda cell: cell.style):
            cells = list(group)
            shown += _run("".join(cell.text for cell in cells), style, at, number, len(cells))
            at += len(cells)
    if "25" in screen.modes:
        x, y = EDGE + screen.column * CELL_WIDTH, EDGE + screen.row * CELL_HEIGHT
        shown.append(
            f'<rect x="{x:.1f}" y="{y}" width="{CELL_WIDTH}" height="{CELL_HEIGHT}" fill="none" stroke="{FRONT}"/>'
        )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" font-size="14" '
        'font-family="DejaVu Sans Mono, Menlo, Consolas, monospace">'
        f'<rect width="100%" height="100%" rx="6" fill="{BACK}"/>{"".join(shown)}</svg>'
    )


def _run(text: str, style: Style, at: int, row: int, cells: int) -> list[str]:
    """The cells of one style, which follow one another in a row."""
    front, back = _hex(style.front) or FRONT, _hex(style.back)
    if style.reversed:
        front, back = back or BACK, front
    x, y, width = EDGE + at * CELL_WIDTH, EDGE + row * CELL_HEIGHT, cells * CELL_WIDTH
    drawn = [f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{CELL_HEIGHT}" fill="{back}"/>'] if back else []
    if text.strip() or style.underlined:
        looks = "".join(
            attribute
            for wanted, attribute in (
                (style.bold, ' font-weight="bold"'), (style.dim, ' opacity="0.6"'),
                (style.italic, ' font-style="italic"'), (style.underlined, ' text-decoration="underline"'),
            ) if wanted
        )  # fmt: skip
        drawn.append(
            f'<text x="{x:.1f}" y="{y + 13.5}" textLength="{width:.1f}" lengthAdjust="spacingAndGlyphs" '
            f'xml:space="preserve" fill="{front}"{looks}>{escape(text)}</text>'
        )
    return drawn


def _hex(colour: int | str | None) -> str | None:
    if not isinstance(colour, int):
        return colour
    if colour < 16:
        return PALETTE[colour]
    if colour >= 232:
        return "#" + f"{8 + 10 * (colour - 232):02x}" * 3
    red, green, blue = (colour - 16) // 36, (colour - 16) // 6 % 6, (colour - 16) % 6
    return f"#{_STEPS[red]:02x}{_STEPS[green]:02x}{_STEPS[blue]:02x}"
