"""Engine, Sandbox, Process: a way of isolating, one running place, one thing that runs in it.

For the author of the next engine: implement these three, declare capabilities that are true, and pass
`workbench.testing.engine_contract`. The host owns every object here; none is shared between event loops.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Hashable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from workbench.model.capability import Capability
from workbench.model.ids import ProcessId, SandboxId
from workbench.model.image import Image
from workbench.model.mounts import Quota
from workbench.model.process import ProcessExit, ProcessSpec, Stream, check_words
from workbench.model.tier import Tier


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadStart:
    """An entry that has begun in a sandbox before anybody had it. Whoever takes it closes it, once."""

    entry: str
    payload: bytes
    env: dict[str, str]
    passed: tuple[int, ...]
    """descriptors for it; they stay with whoever made this"""
    close: Callable[[], None]
    made: object
    """what whoever made it needs when it is claimed"""


class Ahead(Hashable, Protocol):
    """What can wait in a sandbox, begun, for who wants it. Equal ones are the same to everybody."""

    def begin(self) -> HeadStart:
        """One more."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxSpec:
    """Everything an engine may know about the sandbox it is asked for."""

    id: SandboxId
    tier: Tier
    files: Path
    """an existing folder of the host's that appears at /mnt/files, writable; the engine never removes it"""
    packages: Path | None = None
    """an existing folder of the host's that appears at /mnt/packages, read-only; what comes into it later is seen"""
    env: dict[str, str] = field(default_factory=dict)
    """variables of every process inside; the engine adds PATH, HOME and the like"""
    first_entry: str | None = None
    """what will be started first; an engine that has it prepared keeps it for that, and drops what else it prepared"""
    warm: str = ""
    """the warm set of the image that it will import soon; an engine that can makes it from an interpreter that has. A
    wish, never a reason to fail or to wait longer than the import itself would take"""
    ahead: Ahead | None = None
    """what will be started first; an engine that keeps sandboxes ready has one in which it has begun from now on, for
    as long as it is asked for. A wish as well"""

    def checked(self) -> SandboxSpec:
        """Itself, if it can be made.

        Raises:
            InvalidRequest: a variable is too large, or has a name or value that none can have.
        """
        check_words(self.env)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxDescription:
    """What a caller may know about a sandbox: what it is made of and what holds its limits."""

    id: SandboxId
    engine: str
    tier: str
    isolated: bool
    limits_by: str
    """"cgroup v1", "cgroup v2", "rlimits and a watchdog", or "nothing\""""
    warning: str = ""
    """what a caller must be told every time, for an engine that does not isolate"""
    root_pid: int | None = None
    """on this host: the process whose death ends all inside, if there is one; for the host's journal"""
    snapshots: bool = False
    """whether entries can leave dormant copies of themselves in it"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a sandbox uses now."""

    memory_bytes: int
    peak_memory_bytes: int
    cpu_s: float
    processes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OverQuota:
    """What /mnt/files holds where that is more than the tier has."""

    bytes: int
    files: int
    """files and folders"""
    quota: Quota


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningProcess:
    """One process as the machine sees it; everything but the numbers is the guest's own word."""

    pid: int
    """inside"""
    group: int
    """the process that leads its group, inside; every process that was started by `start` leads its own"""
    parent: int
    """whose child it is, inside; one whose parent has ended is another's, whom no `start` has started"""
    started_as: ProcessId | None
    """if it is one that was started by `start`"""
    command: str
    for_s: float
    memory_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputChunk:
    """A piece of output as it came."""

    stream: Stream
    data: bytes


class Process(Protocol):
    """One process that began. Owned by its sandbox, which ends it."""

    def output(self) -> AsyncIterator[OutputChunk]:
        """Pieces until both streams are closed. For one reader, once; another gets a Conflict.

        Output is pulled: a reader that waits makes the process wait. Ends when the last holder of the streams is
        gone, which a process left in the background can put off beyond `wait`.
        """
        ...

    async def wait(self) -> ProcessExit:
        """Its end. May be called by many and again. Never raises because the process or the sandbox died."""
        ...

    async def write_stdin(self, data: bytes) -> None:
        """Wait until all is taken.

        Raises:
            Conflict: it was not started with `stdin`, has ended, or has closed its input.
        """
        ...

    async def close_stdin(self) -> None:
        """End of file for the process. May be called twice."""
        ...

    async def signal(self, number: int) -> None:
        """Send to the process and its group. Nothing happens when it has ended.

        Raises:
            InvalidRequest: there is no such signal.
        """
        ...


class Sandbox(Protocol):
    """One running place. Owned by whoever created it, closed exactly there."""

    @property
    def description(self) -> SandboxDescription:
        """As it is now: the tier may have changed since it was made."""
        ...

    @property
    def calls(self) -> int:
        """A unix socket that listens for what runs inside, which finds it by the variable WORKBENCH_CALLS.

        A descriptor of the sandbox's own, closed with it. Nobody from outside can connect, or `started_as` tells.
        """
        ...

    def take_head_start(self) -> HeadStart | None:
        """What has begun in it already, of which its spec told; once."""
        ...

    def started_as(self, pid: int) -> ProcessId | None:
        """Which process that was started by `start` this one, by the machine's own pid, comes from.

        None for one that has left them all behind, or is gone.

        Raises:
            Denied: it is none of this sandbox.
        """
        ...

    async def start(self, spec: ProcessSpec, passed: Sequence[int] = ()) -> Process:
        """Start a process and return once it runs.

        An entry gets duplicates of `passed`, in that order, as descriptors of its own; they stay the caller's here.

        Raises:
            InvalidRequest: no such program, folder, entry or snapshot; nothing ran.
            Conflict: a process with that id runs; nothing more ran.
            QuotaExceeded: the process limit is reached; nothing ran.
            SandboxUnavailable: the sandbox is gone; nothing ran.
        """
        ...

    async def change_tier(self, tier: Tier) -> None:
        """Give it other limits, keeping its memory. On an error the old tier holds in full.

        Raises:
            QuotaExceeded: it uses more than the new tier has; the message has both numbers.
            SandboxUnavailable: it is gone.
        """
        ...

    async def usage(self) -> Usage:
        """What it uses.

        Raises:
            SandboxUnavailable: it is gone.
        """
        ...

    async def over_quota(self) -> OverQuota | None:
        """What /mnt/files holds, if that is more than the tier has; looked at again where it may have changed, for a
        bounded time. None from an engine that does not measure it, and for what it has not noticed yet.

        Raises:
            SandboxUnavailable: it is gone, maybe for what was found now; `gone` in its context says why.
        """
        ...

    async def wait_over_quota(self) -> OverQuota:
        """Return when what runs is to be interrupted for what it writes into /mnt/files. For one who waits at a time.

        That is when it is first seen over the quota, and again each time that it has grown by a large step. To be at
        the quota is not to be over it, and what was there before the sandbox is nobody's to be interrupted for. An
        engine that measures ends the sandbox, as `wait_gone` tells, only where all of this did not help: a good part
        beyond the quota, or where it cannot measure. One that does not never returns.
        """
        ...

    async def processes(self) -> tuple[RunningProcess, ...]:
        """Everything that runs inside, oldest first, without what the engine itself keeps there.

        Raises:
            SandboxUnavailable: it is gone.
        """
        ...

    @property
    def snapshots(self) -> frozenset[str]:
        """Dormant copies of entries that can be started now, by the names that were given to them."""
        ...

    def expect(self, snapshot: str) -> None:
        """An entry will be asked for a copy under this name. What nobody expects is not kept."""
        ...

    async def snapshot_offered(self, snapshot: str, within_s: float) -> bool:
        """Whether it is there, or came in time."""
        ...

    async def resident_bytes(self) -> int:
        """Of all processes inside but snapshots, pages that several share counted for each."""
        ...

    async def let_go_first(self, snapshot: str) -> None:
        """When memory runs out, it is ended before anything else. Nothing happens if it is gone."""
        ...

    async def discard(self, snapshot: str) -> None:
        """End a dormant copy, also one that has not come yet. Nothing happens if it is gone."""
        ...

    async def sweep(self, newer_than_s: float) -> int:
        """End what was started inside in the last so many seconds, other than by `start`; how many there were.

        What a process that was started by `start` and still runs has started itself is left alone, and whatever is in
        the group of a program that was.
        """
        ...

    @property
    def frozen(self) -> bool:
        """Nothing inside runs."""
        ...

    async def freeze(self) -> bool:
        """Let nothing inside run until `thaw` or `start`; its memory stays as it is. May be called twice.

        False, and everything runs as before, while something is being started or changed inside, if not all of it
        stands still within a bounded time, or if the engine cannot do this. What is asked of the guest meanwhile waits
        for `thaw`; `usage`, `processes` and `aclose` do not need it.

        Raises:
            SandboxUnavailable: it is gone.
        """
        ...

    async def thaw(self) -> None:
        """Let everything go on that `freeze` stopped, and nothing else. Nothing happens if it is not frozen."""
        ...

    async def wait_gone(self) -> str:
        """Return when it has ended, by `aclose` or by itself, with the reason. May be called by many."""
        ...

    async def aclose(self) -> None:
        """Stop every process inside and free the host's resources.

        May be called twice, while processes run, and while it is frozen. Never raises because the guest misbehaves.
        """
        ...


class Engine(Protocol):
    """A way of isolating. One instance per host."""

    @property
    def name(self) -> str:
        """As in the settings."""
        ...

    async def start(self) -> None:
        """Find out by trying what this machine can do, and get ready. Called once, first.

        Raises:
            IsolationTooWeak: a step that this engine cannot do without failed; `context["step"]` names it.
        """
        ...

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """One for every Barrier, as found by `start`."""
        ...

    @property
    def pooled(self) -> int:
        """Sandboxes that are prepared and belong to nobody; 0 for an engine that keeps none."""
        ...

    @property
    def ahead(self) -> int:
        """Besides them, those in which something has begun."""
        ...

    async def change_image(self, image: Image) -> None:
        """Make sandboxes from this image from now on; those that live keep theirs.

        Raises:
            IsolationTooWeak: the new one cannot be started; the old one stays in use.
        """
        ...

    async def create(self, spec: SandboxSpec) -> Sandbox:
        """A sandbox in which nothing runs yet. The caller closes it; if cancelled, nothing is left of it.

        Raises:
            InvalidRequest: its files are not a folder below the files root, or its variables cannot be.
            SandboxUnavailable: it could not be made; `context["step"]` names what failed, and nothing is left of it.
        """
        ...

    async def aclose(self) -> None:
        """End all sandboxes and whatever keeps the engine warm. May be called twice."""
        ...
