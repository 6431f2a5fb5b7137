"""What the SDK takes and gives: options that can be written as dicts, and how a cell or command ended."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, Literal, TypedDict

from workbench.client.displays import Display
from workbench.errors import from_wire
from workbench.model.execution import Outcome
from workbench.model.process import Limit
from workbench.model.records import CellKind
from workbench.wire import rest

PolicyName = Literal["off", "supported", "popular", "any"]
ScopeName = Literal["admin", "sessions", "proxy"]


class IdleOptions(TypedDict, total=False):
    """What happens when nothing happens; None is the server's setting, 0 is never."""

    freeze_after_s: int | None
    end_after_s: int | None


class SandboxOptions(TypedDict, total=False):
    """What a session's sandbox is like; what is left out is as the server has it."""

    sandbox_size: rest.Size
    env: Mapping[str, str]
    start_up: str
    working_folder: str
    snapshots: bool
    enable: bool
    enable_tool_execution: bool
    packages: PolicyName
    corrections: Mapping[str, bool]
    idle: IdleOptions


class Unchanged(Enum):
    """The type of `UNCHANGED`."""

    UNCHANGED = "unchanged"


UNCHANGED: Final = Unchanged.UNCHANGED
"""For values where None already means something: leave it as it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """How a cell or command that began came to its end. Of long outputs this has head and tail; the files have all."""

    cell_id: str
    session_id: str
    kind: CellKind
    outcome: Outcome
    stdout: str
    stderr: str
    results: str
    """the text of the last value; for cells"""
    error: rest.CellError | None
    """what the code raised; for cells"""
    exit_code: int | None
    """as bash has it; for commands"""
    explanation: str
    """what happened and what to do next, unless it just ended"""
    displays: tuple[Display, ...]
    displays_left_out: int
    """rich outputs beyond those that are here"""
    limits: tuple[Limit, ...]
    """caps of the size that were met"""
    corrections: tuple[rest.Correction, ...]
    """what was done for the code beyond what it asked for, what was installed, and hints"""
    receipt: rest.Receipt
    """what the call did to the state"""
    stdout_file_path: str | None
    """where the whole is inside the sandbox, if it is more than is here"""
    stderr_file_path: str | None
    results_file_path: str | None
    displays_file_path: str | None
    displays_note: str
    """how to read that file, or why there is none; and of formats in files of their own, which and where"""

    @classmethod
    def of(cls, cell: rest.Cell) -> Result:
        """The result of what ended.

        Raises:
            WorkbenchError: it never began; the class is the one of the server's code.
        """
        if cell.result is None:
            raise _never_began(cell)
        end = cell.result
        return cls(
            cell_id=cell.id,
            session_id=cell.session_id,
            kind=cell.kind,
            outcome=end.outcome,
            stdout=end.stdout.text,
            stderr=end.stderr.text,
            results=end.results.text,
            error=end.error,
            exit_code=end.exit_code,
            explanation=end.explanation,
            displays=tuple(map(Display.of, end.displays)),
            displays_left_out=end.displays_left_out,
            limits=tuple(end.limits),
            corrections=tuple(end.corrections),
            receipt=end.receipt,
            stdout_file_path=end.stdout.file_path,
            stderr_file_path=end.stderr.file_path,
            results_file_path=end.results.file_path,
            displays_file_path=end.displays_file_path,
            displays_note=end.displays_note,
        )

    @property
    def ok(self) -> bool:
        """It ended by itself, without an error."""
        return self.outcome is Outcome.OK

    @property
    def text(self) -> str:
        """What a person would read: what was printed, then the last value."""
        between = "\n" if self.stdout and self.results and not self.stdout.endswith("\n") else ""
        return self.stdout + between + self.results

    def raise_for_outcome(self) -> Result:
        """Itself, if it is ok.

        Raises:
            OutcomeError: it raised, ran out of time, was interrupted or lost its place.
        """
        if not self.ok:
            raise OutcomeError(self)
        return self

    def __str__(self) -> str:
        problem = self.error.traceback if self.error else self.explanation
        return "\n".join(part.rstrip("\n") for part in (self.text, self.stderr, problem) if part)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedFile:
    """A file of a session, as a list has it."""

    mount_relative_path: str
    sandbox_mount_prefix: str
    """where code inside sees the mount"""
    size: int
    last_modified: str
    """ISO 8601, UTC"""
    version: str
    """another one whenever what is in it has changed"""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilePage:
    """Some of the files of a session, by path."""

    items: list[ListedFile]
    next_cursor: str | None
    """where the next page begins; None if this is the last"""
    skipped: int
    """what lies between these and is no file that can be told of: links, devices, names that are no text"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedFiles:
    """What is no more."""

    path: str
    files: int
    """how many there were"""


@dataclass(frozen=True, slots=True, kw_only=True)
class MountUsage:
    """What a mount holds, and what it may hold."""

    bytes: int
    files: int
    """files and folders"""
    most_bytes: int
    most_files: int
    complete: bool
    """False if a part of it could not be measured"""
    coming_bytes: int
    """of uploads that are not done, which count as well"""
    unsaved: int
    """files that are not in the object store yet, where there is one"""


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalWorkbenchSession:
    """What a box that the caller runs needs to be the place of a session whose sandbox is off."""

    helper_source: str = field(repr=False)
    """a Python module; write it there as composio_helper.py"""
    env: Mapping[str, str] = field(repr=False)
    """variables for what runs there; the credential among them is a token of this session, and shown this once"""
    token_id: str
    """by which the token can be revoked: `Workbench.keys.revoke`"""
    expires_at: str
    """ISO 8601, UTC"""


class OutcomeError(Exception):
    """Code that began and did not end well; only `Result.raise_for_outcome` raises it.

    Not a WorkbenchError: those mean that nothing ran.
    """

    def __init__(self, result: Result) -> None:
        self.result = result
        what = "cell" if result.kind is CellKind.CELL else "command"
        if result.error:
            why = f"{result.error.name}: {result.error.message}"
        elif result.exit_code:
            why = f"exit code {result.exit_code}" + (f": {result.stderr.strip()}" if result.stderr.strip() else "")
        else:
            why = result.explanation
        super().__init__(f"the {what} {result.cell_id} {_SAID[result.outcome]}" + (f": {why}" if why else ""))


_SAID: Mapping[Outcome, str] = {
    Outcome.OK: "ended well",
    Outcome.RAISED: "failed",
    Outcome.TIMED_OUT: "ran out of time",
    Outcome.INTERRUPTED: "was interrupted",
    Outcome.LOST: "was lost",
}


def _never_began(cell: rest.Cell) -> Exception:
    if cell.error is None:
        return AssertionError(f"the cell {cell.id} is {cell.status}: it has neither a result nor an error")
    return from_wire(cell.error.code, cell.error.message, {**cell.error.context, "cell": cell.id})
