"""Every Markdown file: relative links and their anchors resolve, Python compiles, JSON and TOML parse.

Prints one line a fault, `file:line: what`; exit code 1 when there is any.
"""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^(?P<indent>\s*)(?P<mark>`{3,}|~{3,})\s*(?P<language>[\w+-]*)")
LINK = re.compile(r"(?<!\\)\[(?:[^\[\]]|\[[^\]]*\])*\]\((?P<target>[^()\s]+)(?:\s+\"[^\"]*\")?\)")
OUTSIDE = re.compile(r"^[a-z][a-z0-9+.-]*:", re.IGNORECASE)


@dataclass(frozen=True)
class Block:
    """A fenced block: its language, the line after its opening fence, and its text without the fence's indent."""

    language: str
    line_1based: int
    text: str


def markdown_files(root: Path) -> list[Path]:
    """What git knows or would add; without git, all that is not installed."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", "*.md"]
    listed = subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)
    if listed.returncode == 0:
        return [root / name for name in listed.stdout.splitlines() if (root / name).is_file()]
    return [path for path in sorted(root.rglob("*.md")) if not {".venv", "node_modules"} & set(path.parts)]


def split(text: str) -> tuple[list[tuple[int, str]], list[Block]]:
    """The prose lines with their numbers, and the fenced blocks."""
    prose: list[tuple[int, str]] = []
    blocks: list[Block] = []
    opened: re.Match[str] | None = None
    start, lines = 0, list[str]()
    for number, line in enumerate(text.splitlines(), start=1):
        fence = FENCE.match(line)
        if opened is None and fence:
            opened, start, lines = fence, number + 1, []
        elif opened is None:
            prose.append((number, line))
        elif fence and fence["mark"].startswith(opened["mark"]) and not fence["language"]:
            blocks.append(Block(opened["language"].lower(), start, "\n".join(lines)))
            opened = None
        else:
            lines.append(line.removeprefix(opened["indent"]))
    if opened is not None:
        blocks.append(Block("unclosed", start, ""))
    return prose, blocks


def anchors(path: Path) -> set[str]:
    """The anchors a Markdown file's headings get on code hosting sites."""
    prose, _ = split(path.read_text(encoding="utf-8"))
    found: set[str] = set()
    for _, line in prose:
        if heading := re.match(r"#{1,6}\s+(.*?)\s*#*$", line):
            slug = re.sub(r"[^\w\- ]", "", heading[1].lower()).replace(" ", "-")
            numbered = (f"{slug}-{count}" for count in range(1, 1000))
            found.add(slug if slug not in found else next(name for name in numbered if name not in found))
    return found


def link_faults(path: Path, prose: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    """Relative links that lead nowhere; addresses of the outside world are not asked."""
    for number, line in prose:
        for match in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
            target, _, anchor = match["target"].partition("#")
            if OUTSIDE.match(target):
                continue
            goal = (path.parent / target).resolve() if target else path
            if not goal.exists():
                yield number, f"the link {match['target']} leads to no file"
            elif anchor and goal.suffix == ".md" and anchor not in anchors(goal):
                yield number, f"the link {match['target']} leads to no heading"


def compile_python(text: str) -> None:
    """Python as in a REPL that knows await; doctest prompts are taken off first."""
    if text.lstrip().startswith(">>>"):
        text = "\n".join(line[4:] for line in text.splitlines() if line.startswith((">>>", "...")))
    compile(text, "<block>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT | ast.PyCF_ONLY_AST)


READERS: dict[str, Callable[[str], object]] = {
    "python": compile_python,
    "py": compile_python,
    "json": json.loads,
    "toml": tomllib.loads,
}


def block_faults(blocks: list[Block]) -> Iterator[tuple[int, str]]:
    """Blocks that their language cannot read."""
    for block in blocks:
        if block.language == "unclosed":
            yield block.line_1based - 1, "the code block is never closed"
        elif reader := READERS.get(block.language):
            try:
                reader(block.text)
            except (SyntaxError, ValueError) as error:
                yield block.line_1based, f"the {block.language} block does not parse: {error}"


def main(root: Path) -> int:
    """Check every file and say how much was looked at."""
    files = markdown_files(root)
    faults = links = count = 0
    for path in files:
        prose, blocks = split(path.read_text(encoding="utf-8"))
        links += sum(len(LINK.findall(line)) for _, line in prose)
        count += sum(block.language in READERS for block in blocks)
        for line, fault in [*link_faults(path, prose), *block_faults(blocks)]:
            print(f"{path.relative_to(root)}:{line}: {fault}", file=sys.stderr)
            faults += 1
    print(f"docs: {len(files)} files, {links} links, {count} code blocks, {faults} faults")
    return int(faults > 0)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT))
