"""The model loop behind one small door, and the one-way side lane for what happens during a turn."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import Protocol, TypeVar, runtime_checkable

from punie.domain.errors import EngineError
from punie.domain.model.compaction import CompactionOrder, Piece
from punie.domain.model.provider import Effort, ModelPlace, ModelSettings
from punie.domain.session.events import SessionEvent
from punie.domain.session.prompt_files import CommandInfo
from punie.domain.session.transcript import Transcript
from punie.domain.session.turn import StopReason, Turn, Usage
from punie.domain.tools.catalog import ToolCatalog
from punie.domain.tools.tool import ToolCall, ToolResult

H = TypeVar("H")
H_co = TypeVar("H_co", covariant=True)
"""The history of a conversation in the form of the library that holds it; a value that is never changed."""


@runtime_checkable
class EventSink(Protocol):
    """Takes the events of one session; lives as long as it."""

    @abstractmethod
    async def emit(self, event: SessionEvent) -> None:
        """Take the next event. Order is kept, nothing is lost, nothing is repeated.

        The call waits while the listener is slow, so that a slow client slows the engine down instead of filling the
        memory. It does not raise when the listener is gone.
        """
        ...


@runtime_checkable
class ToolDoor(Protocol):
    """The tool desk as an engine sees it; lives as long as a turn."""

    @abstractmethod
    async def offered(self) -> ToolCatalog:
        """The tools as they are now; ask again before each model request, and send `notes` with its instructions."""
        ...

    @abstractmethod
    async def call(self, call: ToolCall) -> ToolResult:
        """Run one call, whatever the model wrote; the result says how it went.

        The calls of one message may be begun together, in the order given: the desk lets them take effect in that
        order, and only calls that look overlap.
        """
        ...

    @abstractmethod
    def cut_short(self, call_id: str) -> ToolResult | None:
        """The result of a call that was cancelled while it ran, for the history; None where there is none to tell."""
        ...


@runtime_checkable
class EngineSession(Protocol):
    """One conversation with one model; lives as long as the session. It remembers the turns it ran."""

    @abstractmethod
    async def run(self, turn: Turn, *, tools: ToolDoor, events: EventSink) -> StopReason:
        """Work on one turn until the model is done, streaming text, thoughts and usage to `events` as they arrive.

        Raises `EngineError` where the model cannot be reached or refuses. When it is cancelled it re-raises at once;
        what was said and done until then stays in its history, repaired so that the next request is valid.
        """
        ...

    @abstractmethod
    def snapshot(self) -> bytes | None:
        """The history in the engine's own form, for `Engine.open` of the same engine.

        While a turn runs it is that of the turns before. Where the engine has made it shorter meanwhile, it holds all
        of the running turn that came before the `CompactionChanged` which says so.
        None where it has not taken in yet what it was opened with: then that still counts.
        """
        ...

    @property
    def commands(self) -> tuple[CommandInfo, ...]:
        """The slash commands that the engine takes itself, before those of Punie; by default none."""
        return ()

    @abstractmethod
    async def aclose(self) -> None:
        """Release connections and other resources; the conversation is over. Idempotent."""
        ...


@runtime_checkable
class HistoryKeeper(Protocol):
    """The further port of an `EngineSession` that sends its history to a model. Never used while a turn runs."""

    @abstractmethod
    async def compact(self, order: CompactionOrder, *, events: EventSink) -> bool:
        """Have the model summarise what was said, and go on from the summary; `events` get the progress.

        False where there is nothing to make shorter. Where it fails, which raises `EngineError`, or is cancelled, the
        history is as it was.
        """
        ...

    @abstractmethod
    def forget(self) -> None:
        """Go on as if nothing had been said yet."""
        ...


@runtime_checkable
class Engine(Protocol):
    """A kind of model loop; lives as long as the process and holds no conversation."""

    @property
    def name(self) -> str:
        """The kind of its snapshots: an engine reads those of others with its name; by default its class."""
        return f"{type(self).__module__}.{type(self).__qualname__}"

    @abstractmethod
    def open(self, session_id: str, snapshot: bytes | None = None, since: Transcript = ()) -> EngineSession:
        """A conversation: a new one, or one that goes on.

        `snapshot` is one of an engine of the same name; `since` is what happened after it, or all there is to know
        where there is none: what another engine did, or a turn whose process died. Raises `EngineError` for a bad
        set-up. For a snapshot that it cannot read, `UnreadableSnapshotError` comes from here, or from the first use of
        what is given before that has done anything: then another one is opened without it.
        """
        ...


@runtime_checkable
class ModelEngine(Engine, Protocol):
    """An `Engine` for one model that loads a library, and that can say something of the model; optional.

    Two engines that are equal share what they hold: of equal engines Punie uses the one that was made first.
    """

    @abstractmethod
    def load(self) -> object:
        """Import the library and set up the model, in a thread of its own. Idempotent, and safe from any thread.

        Raises `EngineError` (`auth`, `configuration`) that names what to set or to install.
        """
        ...

    @abstractmethod
    def reach_by(self, reach: Callable[[], ModelSettings]) -> None:
        """Take the function that gives the key and address stored for the model; called once, before `load`.

        `reach` reads them anew at each call, and may block. An engine without a key ignores it.
        """
        ...

    @property
    @abstractmethod
    def efforts(self) -> tuple[Effort, ...]:
        """The thinking levels that the model can be given; empty where it has none, and before `load`."""
        ...

    @abstractmethod
    def context_tokens(self) -> int | None:
        """The length of the model's context in tokens, if the engine knows it before the model runs; else None.

        Asked once a session, and used where neither the settings nor the model's name tell. May read a file.
        """
        ...

    @property
    @abstractmethod
    def lists_models(self) -> bool:
        """Whether `siblings` asks a provider; a session may choose any model that such a provider has."""
        ...

    @abstractmethod
    async def siblings(self) -> tuple[str, ...]:
        """The models that its provider offers beside it, by the names that choose them.

        Raises `EngineError`, also where the provider does not answer in time.
        """
        ...

    @abstractmethod
    async def ask_once(self) -> str | None:
        """The model's answer to one small request, which may be empty.

        None where the model must be loaded from this machine first: then `load` is all that is tried. Raises
        `EngineError` with the cause of a failure.
        """
        ...

    @abstractmethod
    async def aclose(self) -> None:
        """Close what the sessions shared, once they are closed. Idempotent; a later `load` begins anew."""
        ...


@runtime_checkable
class Upkeep(Protocol[H]):
    """The engine's part of a turn that a library runs: totals of usage, and a history that fits the model's context.

    `shorter` is the latest history that the engine has made shorter in this turn; None where none was too long.
    """

    shorter: H | None

    @abstractmethod
    async def spent(self, usage: Usage, context_tokens: int = 0) -> None:
        """Add what one request used, and tell the listener the totals and how full the context is, where that is known.

        Called after each answer.
        """
        ...

    @abstractmethod
    async def asks(self, instructions: str, tools: Mapping[str, bytes], history: Iterable[bytes]) -> None:
        """Note how the request that is made now begins; digests are made of it, and nothing is kept.

        `tools` are the definitions sent, by name in their order; `history` has each message in any form that changes
        with what is sent of it.
        """
        ...

    @abstractmethod
    async def where_needed(self, history: H) -> H | None:
        """A shorter history for the next request; None where this one fits, or cannot be made shorter.

        Called before each request, with all that the turn has added.
        """
        ...

    @abstractmethod
    async def where_refused(self, history: H) -> H | None:
        """A shorter history for a request that the provider found too long; None where there is none."""
        ...


@runtime_checkable
class LibraryTurn(Protocol[H_co]):
    """One turn in a library; lives as long as it."""

    @abstractmethod
    async def work(self) -> StopReason:
        """Ask the model and make its calls until it is done. Raises one of the library's `failures`."""
        ...

    @abstractmethod
    def left(self, *, refused: bool) -> H_co:
        """The history once `work` is over, however it ended: valid for a next request, every call with a result.

        An answer that was broken off is part of it as far as it was said. Where the provider `refused` the prompt
        before anything came of it, it is not: it would be refused again with every prompt that follows.
        """
        ...


@runtime_checkable
class ModelLibrary(Protocol[H]):
    """One model, set up in the library that runs it; lives as long as its engine, or until it is reached otherwise.

    `LibraryEngine` is the engine around it: opening, memory, compaction, new credentials and the ends of turns are the
    same for every library.

    `place` is where the model is, for messages. `client` is that of the model's provider; one with `models.list()`, as
    OpenAI's has it, is asked for its models. `efforts` are the thinking levels that the model can be given. `failures`
    are the library's exceptions for a request that failed, none of which is a bug.
    """

    place: ModelPlace
    client: object
    efforts: tuple[Effort, ...]
    failures: tuple[type[Exception], ...]

    @abstractmethod
    def explained(self, failure: Exception) -> EngineError:
        """One of `failures` for people. A request that was too long for the model has the kind `context`."""
        ...

    @abstractmethod
    async def enter(self) -> None:
        """Take charge of connections, before the first request. Idempotent."""
        ...

    @abstractmethod
    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        ...

    @abstractmethod
    def decode(self, snapshot: bytes | None, since: Transcript) -> H:
        """The history of a snapshot, if there is one, and of what happened after it.

        Raises `UnreadableSnapshotError`.
        """
        ...

    @abstractmethod
    def encode(self, history: H) -> bytes:
        """A snapshot of a history, also of one whose turn still runs."""
        ...

    @abstractmethod
    def begin(self, history: H, turn: Turn, *, tools: ToolDoor, events: EventSink, upkeep: Upkeep[H]) -> LibraryTurn[H]:
        """A turn that goes on from the history; nothing is asked before its `work`."""
        ...

    @abstractmethod
    async def ask(
        self, question: str, *, instructions: str, max_tokens: int, say: Callable[[str], Awaitable[None]]
    ) -> tuple[str, Usage]:
        """One request without history and tools: the text of the answer, which may be empty, and what it used.

        `say` takes each piece of the text as it comes. Raises one of `failures`.
        """
        ...

    @abstractmethod
    def tokens(self, history: H) -> int:
        """How much of the context it takes: as the provider counted with the last answer, the rest by its length."""
        ...

    @abstractmethod
    def pieces(self, history: H) -> Sequence[Piece]:
        """The parts between which it may be cut, in order."""
        ...

    @abstractmethod
    def with_results_away(self, history: H, before: int) -> H:
        """The history with each result in its pieces before `before` as `put_away` leaves it, and nothing else changed.

        The provider's count of what was sent is no longer that of this history.
        """
        ...

    @abstractmethod
    def before(self, history: H, first: int) -> H | None:
        """The history up to its piece `first`, as it was once sent; None for a model that cannot be asked with it.

        A model that is held to answers of one form can write no summary as the next answer of its conversation.
        """
        ...

    @abstractmethod
    def shortened(self, history: H, first: int, prompt: int | None, summary: str) -> H:
        """The history with a summary in the place of its pieces before `first`, save the piece `prompt`, which stays.

        `prompt` is None, or a piece before `first`.
        """
        ...
