"""An engine that finds rhymes in a file by calling a tool: `python examples/rhyming_engine.py` shows it at work."""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio
from attrs import frozen

from punie.api import (  # isort: skip
    Engine, EngineSession, EventSink, PlugIns, StopReason, Text, TextDelta, ToolCall, ToolDoor, Transcript, Turn,
    open_session_here,
)  # fmt: skip


@frozen
class RhymingEngine(Engine):
    """Made from what follows the colon in the model's name."""

    file: str

    def open(self, session_id: str, snapshot: bytes | None = None, since: Transcript = ()) -> EngineSession:
        return RhymingSession(self.file)


@frozen
class RhymingSession(EngineSession):
    """One conversation; it remembers nothing."""

    file: str

    async def run(self, turn: Turn, *, tools: ToolDoor, events: EventSink) -> StopReason:
        said = " ".join(block.text for block in turn.prompt.blocks if isinstance(block, Text))
        word = said.strip(" .,!?").rpartition(" ")[2].lower()
        result = await tools.call(ToolCall(f"{turn.id}-1", "read_file", {"path": self.file}))
        rhymes = [other for other in str(result.data).split() if other != word and other[-2:] == word[-2:]]
        await events.emit(TextDelta(f"{word}: {result.error_message or ', '.join(rhymes) or 'no rhyme'}\n", turn.id))
        return StopReason.END_TURN

    def snapshot(self) -> bytes:
        return b""

    async def aclose(self) -> None: ...


async def main() -> None:
    """Three prompts to a session whose model is `rhyme:words.txt`."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "words.txt").write_text("cat house hat mouse night", encoding="utf-8")
        rhyme = PlugIns(engines={"rhyme": lambda: RhymingEngine})
        async with open_session_here(folder, model="rhyme:words.txt", plug_ins=rhyme) as session:
            for word in ("hat", "house", "orange"):
                await session.prompt(f"What rhymes with {word}?")


if __name__ == "__main__":
    anyio.run(main)
