"""A cell or a command: what is asked for, what it said, how it ended, and what it did to the state.

If it began there is a result with an outcome; if it never began there is an error, and nothing of this module.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from enum import StrEnum

from workbench.errors import InvalidRequest
from workbench.model.ids import CellId
from workbench.model.process import Limit

DEFAULT_LIMIT_S = 180.0
# One message to the kernel; longer programs belong into a file.
MAX_CODE_BYTES = 4 * 1024 * 1024


class Outcome(StrEnum):
    """How something that began came to its end."""

    OK = "ok"
    RAISED = "raised"
    """an exception of its own, or for a command an exit code that is not 0"""
    TIMED_OUT = "timed out"
    INTERRUPTED = "interrupted"
    LOST = "lost"
    """what it ran in ended under it"""


class MemoryState(StrEnum):
    """What has become of the variables since the last call."""

    INTACT = "intact"
    RESTORED = "restored"
    LOST = "lost"


@dataclass(frozen=True, slots=True, kw_only=True)
class Cell:
    """A piece of code for a kernel."""

    id: CellId
    code: str
    limit_s: float = DEFAULT_LIMIT_S
    store_history: bool = True
    """count it, and keep it and its value in In and Out"""
    corrected: bool = True
    """as far as the session has it; not where nobody would be told"""

    def checked(self, most_s: float) -> Cell:
        """Itself, if it can be run.

        Raises:
            InvalidRequest: too long, not text, or with a limit that is not between 0 and `most_s`.
        """
        _check_code("the code", self.code)
        _check_limit(self.limit_s, most_s)
        return self


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A command line for bash."""

    id: CellId
    command: str
    limit_s: float = DEFAULT_LIMIT_S
    cwd: str = "/home/user"

    def checked(self, most_s: float) -> Command:
        """As for a cell."""
        _check_code("the command", self.command)
        if "\0" in self.command:
            raise InvalidRequest("the command may not contain a NUL character")
        _check_limit(self.limit_s, most_s)
        return self


def _check_code(what: str, text: str) -> None:
    try:
        size = len(text.encode())
    except UnicodeEncodeError as problem:
        raise InvalidRequest(f"{what} is not text in UTF-8: {problem.reason} at character {problem.start}") from None
    if size > MAX_CODE_BYTES:
        raise InvalidRequest(f"{what} is over {MAX_CODE_BYTES} bytes; put it into a file under /mnt/files and run that")


def _check_limit(limit_s: float, most_s: float) -> None:
    # Neither survives being written down as JSON.
    if not math.isfinite(limit_s):
        raise InvalidRequest(f"a time limit is a number of seconds, not {limit_s:g}")
    if not 0 < limit_s <= most_s:
        raise InvalidRequest(f"a time limit must be above 0 and at most {most_s:g} s, not {limit_s:g}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Text:
    """What is shown of a stream, and where the whole is."""

    text: str = ""
    """all of it, or its head and its tail with a line between that says what is left out"""
    characters: int = 0
    """of the whole"""
    lines: int = 0
    """of the whole"""
    file_path: str | None = None
    """where the whole is inside the sandbox, if more than is shown"""
    note: str = ""
    """how to read the file, or why there is none"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Display:
    """One rich output: the same thing in several formats."""

    data: dict[str, str]
    """by mime type; pictures in base64, as the Jupyter protocol has them; JSON types as JSON text"""
    metadata: str = "{}"
    """JSON"""
    display_id: str = ""
    is_result: bool = False
    """the last value of the cell, not something that it displayed"""
    is_update: bool = False
    """of something that an earlier cell displayed under this id"""
    files: dict[str, str] = field(default_factory=dict)
    """by mime type: where a format is inside the sandbox that is too large to be in `data`"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellError:
    """What the code raised."""

    name: str
    message: str
    traceback: str
    """plain text: the agent's own lines, and what Python suggests"""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotState:
    """What would be left of a memory if it ended."""

    kept: int = 0
    """snapshots there are; the newest is what a lost memory is restored from, the older ones are for undo"""
    current: bool = False
    """the newest is of the memory as it is, or was before the call of the receipt"""
    cost_s: float = 0.0
    """how long the kernel stood still for the newest"""
    reason: str = ""
    """why there is none, or none that is current"""


@dataclass(frozen=True, slots=True, kw_only=True)
class HelperUse:
    """What a cell or command asked of the workbench by its helpers."""

    calls: int = 0
    failed: int = 0
    prompt_tokens: int = 0
    """sent to a language model"""
    completion_tokens: int = 0
    """that it answered"""


class CorrectionKind(StrEnum):
    """What a correction is."""

    CORRECTED = "corrected"
    """something else was done than was written"""
    INSTALLED = "installed"
    """packages that were missing are there now"""
    HINT = "hint"
    """nothing was done; what could be"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Correction:
    """Something that was done for the code, or that it is told, beyond what it asked for."""

    kind: CorrectionKind
    rule: str
    """its stable name; docs/reference lists them"""
    text: str
    """a sentence for the agent"""
    line: int = 0
    """of the code, from 1; 0 if it belongs to none"""
    packages: tuple[str, ...] = ()
    """`name==version` of what was installed"""
    seconds: float = 0.0
    """that it took"""
    times: int = 1
    """that it happened there"""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleCount:
    """How often a rule had something to do."""

    rule: str
    acted: int = 0
    """something else was done than was written"""
    declined: int = 0
    """it looked like the mistake, and there was a reason to leave it"""
    hinted: int = 0
    """told without doing anything"""
    repeated: int = 0
    """acted on the same again in the next cell"""
    undone: int = 0
    """the next cell was asked to run as it is, or bound the name to something else"""


MOST_CORRECTIONS = 20
"""that are told one by one of a cell; further ones are counted"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrections:
    """All of one cell or command, in the order in which they came."""

    items: tuple[Correction, ...] = ()
    left_out: int = 0
    """beyond those"""

    def with_more(self, more: tuple[Correction, ...], left_out: int = 0) -> Corrections:
        """Both, within bounds."""
        everything = (*self.items, *more)
        cut = max(0, len(everything) - MOST_CORRECTIONS)
        return Corrections(items=everything[:MOST_CORRECTIONS], left_out=self.left_out + left_out + cut)

    def texts(self, kind: CorrectionKind) -> tuple[str, ...]:
        """Of one kind."""
        return tuple(one.text for one in self.items if one.kind is kind)


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What a call did to the state. Changes inside an object are not seen, only names that mean another object."""

    epoch: int
    """one number per kernel memory; another one means that variables are not those of before"""
    execution_count: int = 0
    state: MemoryState = MemoryState.INTACT
    reason: str = ""
    """what happened to the memory, unless it is intact"""
    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    rebound: tuple[str, ...] = ()
    more_names: int = 0
    """changed names beyond those that are listed"""
    working_folder: str = ""
    peak_memory_bytes: int = 0
    """the most that the whole sandbox used up to the end of this call"""
    cpu_s: float = 0.0
    """of the whole sandbox during this call"""
    wall_s: float = 0.0
    snapshot: SnapshotState = field(default_factory=SnapshotState)
    """as it was when the call began: what a loss during the call is restored from"""
    helpers: HelperUse = field(default_factory=HelperUse)
    corrections: tuple[str, ...] = ()
    """what was done otherwise than it was written, in words"""
    installs: tuple[str, ...] = ()
    """which packages were installed, in words"""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellResult:
    """How a cell that began came to its end."""

    cell: CellId
    outcome: Outcome
    results: Text = field(default_factory=Text)
    """the text of the last value"""
    stdout: Text = field(default_factory=Text)
    stderr: Text = field(default_factory=Text)
    error: CellError | None = None
    """what was raised"""
    explanation: str = ""
    """what happened and what to do next, in a sentence or two: if the outcome is neither ok nor raised, or if there is
    something else that one must know, say that /mnt/files is over its quota
    """
    displays: tuple[Display, ...] = ()
    displays_left_out: int = 0
    """rich outputs beyond those that are here; all of them are in the spool, and in `displays_file_path`"""
    displays_file_path: str | None = None
    displays_note: str = ""
    """how to read that file, or why there is none; and of formats in files of their own, which and where"""
    limits: tuple[Limit, ...] = ()
    """caps of the tier that were met"""
    corrections: tuple[Correction, ...] = ()
    """what was done for it beyond what it asked for, and hints, in the order in which they came"""
    corrections_left_out: int = 0
    """beyond those"""
    rules: tuple[RuleCount, ...] = ()
    """of the corrections, those that had something to do, be it to decline"""
    receipt: Receipt


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandResult:
    """How a command that began came to its end."""

    command: CellId
    outcome: Outcome
    exit_code: int | None
    """as bash has it; None when the sandbox ended under it"""
    stdout: Text = field(default_factory=Text)
    stderr: Text = field(default_factory=Text)
    explanation: str = ""
    limits: tuple[Limit, ...] = ()
    corrections: tuple[Correction, ...] = ()
    """what was done for it beyond what it asked for, and hints, in the order in which they came"""
    corrections_left_out: int = 0
    """beyond those"""
    receipt: Receipt


def correction_lines(result: CellResult | CommandResult) -> list[str]:
    """One each, for people and for answers that have no field for them."""
    more = [f"[sandbox] {result.corrections_left_out} more corrections and hints"]
    return [f"[sandbox] {one.text}" for one in result.corrections] + (more if result.corrections_left_out else [])


def with_corrections(result: CellResult | CommandResult) -> Text:
    """What went to standard error, and behind it what was corrected: for answers whose shape has no room for more."""
    lines = correction_lines(result)
    if not lines:
        return result.stderr
    said = result.stderr.text
    added = ("\n" if said and not said.endswith("\n") else "") + "".join(f"{line}\n" for line in lines)
    return replace(
        result.stderr,
        text=said + added,
        characters=result.stderr.characters + len(added),
        lines=result.stderr.lines + len(lines),
    )


class PieceKind(StrEnum):
    """What a piece of output is."""

    STDOUT = "stdout"
    STDERR = "stderr"
    DISPLAY = "display"
    """something displayed, or the last value"""
    UPDATE = "update"
    """a display shown before, by its id, has changed"""
    CLEAR = "clear"
    """what was shown so far may be taken away"""
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """A piece of output as it came."""

    kind: PieceKind
    text: str = ""
    """for the streams"""
    wait: bool = False
    """for a clearing: only once something else comes"""
    display: Display | None = None
    error: CellError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """One name of the kernel's memory."""

    name: str
    type: str
    size: str
    """as people say it: a shape, a length, bytes; empty if it has none"""
    preview: str
    """a short repr"""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedCell:
    """One that waits or runs."""

    cell: CellId
    origin: str
    """`session`, or `attached` for what an attached notebook sent"""
    running: bool
    for_s: float
    """how long it has waited, or run"""
    first_line: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundProcess:
    """Something that runs in the sandbox and is neither the kernel nor a command under way."""

    pid: int
    """inside"""
    command: str
    for_s: float
    memory_bytes: int
