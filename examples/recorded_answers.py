"""Testing a tool of one's own with answers that were written down: what runs, what is asked, what is refused.

Run it: `python examples/recorded_answers.py`. `RecordedBroker` plays the person; it needs no IDE and no keyboard.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import anyio

from punie.api import RecordedBroker, open_session_here

CALLS = (
    ("write_file", {"path": "diary.txt", "content": "A quiet day.\n"}),
    ("write_file", {"path": "diary.txt", "content": "A loud day.\n"}),
    ("run_command", {"command": "rm diary.txt"}),
)


async def main() -> None:
    """Yes, no, and a question that nobody wrote an answer for."""
    person = RecordedBroker(["allow_once", "reject"])
    with tempfile.TemporaryDirectory() as folder:
        async with open_session_here(folder, broker=person) as session:
            for tool, arguments in CALLS:
                result = await session.call(tool, arguments)
                print(f"{tool}: {result.outcome}: {result.text}")
        print((Path(folder) / "diary.txt").read_text("utf-8"), end="")
    for question in person.questions:
        print(f"{question.title}: {question.rule}")


if __name__ == "__main__":
    anyio.run(main)
