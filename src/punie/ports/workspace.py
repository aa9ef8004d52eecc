"""The workspace of a session: files, folders, the repository, programs, and what a project says of itself."""

from __future__ import annotations

from abc import abstractmethod
from typing import Protocol, runtime_checkable

from attrs import frozen

from punie.domain.session.prompt_files import PromptFile, Skill, SkillText
from punie.domain.values.paths import Location
from punie.domain.values.terminal import Command, ExitStatus, TerminalOutput


@runtime_checkable
class Workspace(Protocol):
    """Reads and writes text files by absolute path; lives as long as the session.

    The paths handed in were located inside the session's roots; an adapter that touches this machine's disk checks
    again when it opens them. Served by the client, a read includes what the person has not saved yet.
    """

    @abstractmethod
    async def read_text(self, path: str, *, line_1based: int | None = None, limit_lines: int | None = None) -> str:
        """The text, whole or `limit_lines` lines from `line_1based` on. Raises `ToldToModel` with the reason."""
        ...

    @abstractmethod
    async def write_text(self, path: str, content: str) -> None:
        """Make the file hold exactly `content`; a missing parent folder is made. All or nothing.

        Raises `ToldToModel` with the reason.
        """
        ...


@runtime_checkable
class PathGuard(Protocol):
    """Knows the session's directories and follows links; lives as long as the session."""

    @abstractmethod
    async def locate(self, path: str) -> Location:
        """The absolute path with every link followed (of the deepest part that exists), and where it lies.

        A relative path is taken from the session's working directory. Never raises: what cannot be resolved lies
        outside.
        """
        ...


@frozen
class FoundLine:
    """One line that holds the text: absolute path, line number from 1, and the line without its end."""

    path: str
    line_1based: int
    text: str


@frozen
class Listing:
    """Absolute paths in order (folders end with a slash); `complete` is False where a bound cut it short."""

    paths: tuple[str, ...]
    complete: bool = True


@frozen
class Findings:
    """Matching lines in path order; `complete` is False where a bound cut the search short."""

    lines: tuple[FoundLine, ...]
    files_read: int
    complete: bool = True


@runtime_checkable
class FileTree(Protocol):
    """Lists and searches below a folder inside the session's roots; lives as long as the session.

    What git ignores is passed over, and so are `.git` itself, links that lead out of the roots, and, in a search,
    binary files and files that usually hold secrets.
    """

    @abstractmethod
    async def list_files(self, path: str, *, recursive: bool, limit: int) -> Listing:
        """The entries of one folder, or of the whole tree below it, at most `limit`. Raises `ToldToModel`."""
        ...

    @abstractmethod
    async def search_text(
        self, path: str, text: str, *, case_sensitive: bool, glob: str | None, limit: int
    ) -> Findings:
        """The lines below `path` (a folder or a file) that contain `text` literally. Raises `ToldToModel`."""
        ...


@frozen
class RepositoryStatus:
    """Branch (None: detached or unborn) and changed paths, relative to the repository's top, each list sorted."""

    branch: str | None
    staged: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    untracked: tuple[str, ...] = ()


@frozen
class Commit:
    """One commit: full hash, author, ISO 8601 time with offset, whole message."""

    id: str
    author: str
    time: str
    message: str


@runtime_checkable
class Repository(Protocol):
    """Reads, and on leave writes, the repository that holds the session's directory; lives as long as the session.

    It goes through a library that runs no program, no hook, no filter, no pager and no configured command: a strange
    repository's configuration must not run code. Every method raises `ToldToModel` where there is no repository.
    """

    @abstractmethod
    async def status(self) -> RepositoryStatus:
        """What differs from the last commit."""
        ...

    @abstractmethod
    async def diff(self, path: str | None, *, staged: bool) -> str:
        """A unified diff of the working tree against the index, or of the index against the last commit."""
        ...

    @abstractmethod
    async def log(self, limit: int) -> tuple[Commit, ...]:
        """The newest commits first, at most `limit`."""
        ...

    @abstractmethod
    async def add_and_commit(self, message: str, paths: tuple[str, ...]) -> Commit:
        """Stage `paths` (all changed and untracked ones where empty) and commit them."""
        ...


@runtime_checkable
class Terminals(Protocol):
    """Starts programs and keeps their output; lives as long as the session. Nothing it started outlives it.

    Every method raises `UnknownTerminalError` for an id it does not hold, and `ToldToModel` with the reason where the
    other side refuses.
    """

    @property
    @abstractmethod
    def shown_by_client(self) -> bool:
        """Whether the client can show a terminal live by its id."""
        ...

    @abstractmethod
    async def create(self, command: Command) -> str:
        """Start the program and give the terminal's id at once. Cancelled while starting, it leaves nothing behind."""
        ...

    @abstractmethod
    async def output(self, terminal_id: str) -> TerminalOutput:
        """What it printed so far, the last `output_limit_bytes` of it, and the file with more where one is kept."""
        ...

    @abstractmethod
    async def wait(self, terminal_id: str) -> ExitStatus:
        """Wait until the program itself ended; what it left in the background does not count."""
        ...

    @abstractmethod
    async def kill(self, terminal_id: str) -> None:
        """End the program and its process group; the terminal and its output stay until released. Idempotent."""
        ...

    @abstractmethod
    async def release(self, terminal_id: str) -> None:
        """Kill what still runs and forget the terminal; the id is unknown afterwards."""
        ...


@runtime_checkable
class OutputStore(Protocol):
    """Keeps texts of one session in files that only this user can read; they go with the session."""

    @abstractmethod
    async def keep(self, name: str, text: str) -> str | None:
        """Write the text into a file of its own and give its absolute path, links followed; None where it cannot.

        Never raises. The oldest texts go when there are too many. Of a text that is too long for a file its beginning
        and its end are kept, and the file says so.
        """
        ...

    @abstractmethod
    async def beginning(self, path: str, limit_bytes: int) -> str | None:
        """The first bytes of a file of this store, as text; None where it is none, or gone. Never raises."""
        ...

    @abstractmethod
    def holds(self, path: str) -> bool:
        """Whether that absolute path, links followed, is a file of this store."""
        ...


@runtime_checkable
class ProjectNotes(Protocol):
    """The project's AGENTS.md; lives as long as the session. It is configuration, read without a tool call."""

    @abstractmethod
    async def read(self) -> str | None:
        """The text, at most 32 KiB of it; None where there is none, or it leads out of the session's directories."""
        ...


@runtime_checkable
class PromptFiles(Protocol):
    """The prompts of one session's project; lives as long as the session."""

    @abstractmethod
    async def read(self) -> tuple[PromptFile, ...]:
        """Those there are now, by name; what cannot be read, or is no prompt, is left out. Never raises for that."""
        ...


@runtime_checkable
class SkillShelf(Protocol):
    """The skills of one session; lives as long as it. They are configuration, found without a tool call."""

    @abstractmethod
    async def skills(self) -> tuple[Skill, ...]:
        """Those there are, each name once, in the order in which they are offered; always the same within a session.

        What makes no skill is left out and named in the log. Never raises for that.
        """
        ...

    @abstractmethod
    async def load(self, skill: Skill) -> SkillText:
        """What one of them says now. Raises `ToolFailedError` where it went or broke since."""
        ...
