"""What every book of turns promises: an open turn is found once its process is gone, and is claimed by one other."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

import anyio
import pytest
from attrs import define, field

from punie.domain.errors import SessionStoreError
from punie.domain.session.log import ProcessIdentity
from punie.domain.tools.catalog import ClientCapabilities
from punie.ports.turns import StepKind, TurnBook, TurnCalledOffError, TurnOrder, TurnStatus
from tests.contract.session_benches import Table
from tests.fakes.memory_turns import MemoryTurnBook

pytestmark = pytest.mark.anyio

ORDER = TurnOrder("t-1", "s", "/project", ("/more",), ClientCapabilities(notices=True), alone=True, model="m")


class Books(Protocol):
    """A book, opened by one process after the other."""

    async def next(self) -> TurnBook:
        """The book of another process; the one before is dead."""
        ...


@define
class MemoryBooks:
    last: MemoryTurnBook | None = None

    async def next(self) -> TurnBook:
        if self.last is not None:
            await self.last.aclose()
        before = self.last or MemoryTurnBook("0")
        self.last = MemoryTurnBook(f"{int(before.server) + 1}", before.entries, before.alive)
        return self.last


@define
class DbosBooks:
    """On a file, one after the other: DBOS is one for each process."""

    folder: Path
    count: int = 0
    dead: set[ProcessIdentity] = field(factory=set)
    last: TurnBook | None = None

    async def next(self) -> TurnBook:
        from punie.adapters.durable.book import DbosTurnBook, Place

        await self.close()
        self.count += 1
        own = ProcessIdentity("m", self.count)
        self.dead.add(ProcessIdentity("m", self.count - 1))
        place = Place(None, self.folder / "state" / "turns.sqlite")
        self.last = DbosTurnBook(place, Table(own, self.dead), logging.getLogger("test.turns"))
        return self.last

    async def close(self) -> None:
        if self.last is not None:
            await self.last.aclose()


@asynccontextmanager
async def _in_memory(_folder: Path) -> AsyncIterator[Books]:
    yield MemoryBooks()


@asynccontextmanager
async def _on_dbos(folder: Path) -> AsyncIterator[Books]:
    pytest.importorskip("dbos")
    made = DbosBooks(folder)
    yield made
    await made.close()


@pytest.fixture(params=[_in_memory, _on_dbos], ids=["MemoryTurnBook", "DbosTurnBook"])
async def books(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Books]:
    with anyio.fail_after(60):
        async with request.param(tmp_path) as made:
            yield made


async def test_a_turn_is_open_until_its_end_and_goes_on_in_another_process(books: Books) -> None:
    book = await books.next()
    steps = await book.begin(ORDER)
    await steps.took(StepKind.REQUEST, "m")
    await steps.took(StepKind.CALL, "write_file")
    assert list(await book.open_elsewhere()) == []
    other = await books.next()
    assert list(await other.open_elsewhere()) == [ORDER]
    taken = await other.claim("t-1")
    assert taken is not None
    await taken.took(StepKind.CALL, "run_command")
    assert list(await other.open_elsewhere()) == []
    await taken.ended("end_turn")
    (known,) = await other.known()
    assert (known.order, known.status, known.how) == (ORDER, TurnStatus.ENDED, "end_turn")
    assert await other.claim("t-1") is None
    assert not await other.cancel("t-1")
    assert await (await books.next()).open_elsewhere() in ([], ())


async def test_a_turn_that_was_handed_on_is_found_while_its_process_lives_and_can_be_claimed(books: Books) -> None:
    book = await books.next()
    steps = await book.begin(ORDER)
    await steps.took(StepKind.REQUEST, "m")
    await steps.hand_on()
    await steps.hand_on()
    assert list(await book.open_elsewhere()) == [ORDER]
    with pytest.raises(SessionStoreError):
        await steps.took(StepKind.CALL, "too_late")
    other = await books.next()
    assert list(await other.open_elsewhere()) == [ORDER]
    taken = await other.claim("t-1")
    assert taken is not None
    await taken.took(StepKind.CALL, "run_command")
    await taken.ended("end_turn")
    assert [known.how for known in await other.known()] == ["end_turn"]


async def test_a_turn_that_is_called_off_takes_no_further_step(books: Books) -> None:
    book = await books.next()
    steps = await book.begin(ORDER)
    assert list(await book.called_off()) == []
    assert await book.cancel("t-1")
    assert list(await book.called_off()) == ["t-1"]
    with pytest.raises(TurnCalledOffError):
        await steps.took(StepKind.CALL, "write_file")
    await steps.ended("cancelled")
    assert await book.claim("t-1") is None
    assert [known.status for known in await book.known()] == [TurnStatus.CANCELLED]
    assert await book.claim("never begun") is None
    assert not await book.cancel("never begun")


async def test_a_pickle_in_the_database_is_not_loaded(tmp_path: Path) -> None:
    pytest.importorskip("dbos")
    import base64
    import pickle

    import apsw

    made = DbosBooks(tmp_path)
    book = await made.next()
    steps = await book.begin(ORDER)
    await steps.ended("end_turn")

    class Harmful:
        def __reduce__(self) -> tuple[object, tuple[object, ...]]:
            return (Path.touch, (tmp_path / "it-ran",))

    planted = base64.b64encode(pickle.dumps(Harmful())).decode()
    database = apsw.Connection(str(tmp_path / "state" / "turns.sqlite"))
    database.execute(
        "UPDATE workflow_status SET inputs = ?, output = ?, serialization = 'py_pickle'", (planted, planted)
    )
    assert database.changes() == 1
    database.close()
    try:
        await book.known()
    except SessionStoreError:
        pass
    finally:
        await made.close()
    assert not (tmp_path / "it-ran").exists()
