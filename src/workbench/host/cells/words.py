"""What an agent is told when something other than its code decided how a call ended. True, and with a next step."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from workbench.contracts.engine import OverQuota
from workbench.model.execution import Outcome
from workbench.model.process import Limit, ProcessExit

RESTARTED = "the kernel was restarted by request"
NOT_INTERRUPTIBLE = "the kernel did not react to interrupts and had to be ended"
_OVER_QUOTA = "/mnt/files is over its quota"
_DELETE = "Delete files there: until then code runs, and is interrupted when it adds more to them."
_NEW_KERNEL = "The next cell runs in a new kernel: import and define again what you need."


@dataclass(frozen=True, slots=True)
class Place:
    """What stays when a memory or a sandbox goes."""

    files_kept: bool
    """/mnt/files outlives the sandbox"""
    has_start_up: bool
    most_s: float
    """the longest limit that may be asked for"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """A memory that came back."""

    cells_lost: int
    """that had ended well and are lost all the same, because no snapshot could be taken after them"""
    execution_count: int
    """of the last cell that it remembers"""
    not_carried: str


def restored_words(restored: Restored) -> str:
    """In a clause, for a receipt."""
    since = f", without {_last_cells(restored.cells_lost)} before it" if restored.cells_lost else ""
    lost = f"; not carried: {restored.not_carried}" if restored.not_carried else ""
    return f"its memory was restored from a snapshot{since}{lost}"


def how_it_ended(end: ProcessExit) -> str:
    """Why the kernel is gone, in a clause."""
    if end.lost:
        return f"the sandbox ended: {end.reason or 'nobody knows why'}"
    # Others may have been ended for memory before it; only a kill is one that memory can be the reason of.
    if Limit.MEMORY in end.limits and end.signal == signal.SIGKILL:
        return "the kernel ran out of memory and was ended"
    if end.signal is not None:
        return f"the kernel was killed by signal {end.signal} ({signal_words(end.signal)})"
    return f"os._exit or a library ended the kernel's process with code {end.code}"


def sandbox_ended(reason: str) -> ProcessExit:
    """How everything in it ended."""
    return ProcessExit(code=None, lost=True, reason=reason)


def signal_words(number: int) -> str:
    """`segmentation fault` and the like."""
    try:
        return (signal.strsignal(number) or "unknown").lower()
    except ValueError:
        return "unknown"


def after_a_restore(restored: Restored, end: ProcessExit | None) -> str:
    """What is as it was, what is not, and what to do next."""
    if restored.cells_lost:
        upto = f"as they were after cell [{restored.execution_count}]" if restored.execution_count else "empty"
        kept = (
            f"Variables are {upto}: what {_last_cells(restored.cells_lost)} before this one did to them is lost too, "
            "because no snapshot could be taken since."
        )
    else:
        kept = "Variables are as they were before this cell."
    lost = f" Could not be carried: {restored.not_carried}." if restored.not_carried else ""
    return f"{kept}{lost} Files are as the cell left them. Nothing was run again.{_advice(end)}"


def _last_cells(number: int) -> str:
    return "the last cell" if number == 1 else f"the last {number} cells"


def _advice(end: ProcessExit | None) -> str:
    if end is not None and Limit.MEMORY in end.limits:
        return " Work on less at once, free what is not needed, or use a larger tier."
    return ""


def after_a_loss(place: Place, end: ProcessExit | None) -> str:
    """What is gone, what is left, and what to do next."""
    if end is not None and end.lost:
        files = "/mnt/files is kept" if place.files_kept else "so is /mnt/files, which was made for it"
        return f"Variables, /home/user and /tmp are gone; {files}. The next call starts a new sandbox."
    start_up = " The session's start-up code is run in it first." if place.has_start_up else ""
    kept = "Variables are gone; files in /home/user and /mnt/files are still there."
    return f"{kept} {_NEW_KERNEL}{start_up}{_advice(end)}"


def then_gone(what: str, reason: str, place: Place) -> str:
    """For what had come to its own end just before the sandbox did."""
    return f"After {what} had ended, so did the sandbox: {reason}. {after_a_loss(place, sandbox_ended(reason))}"


def over_quota_words(over: OverQuota) -> str:
    """In a clause, why something was interrupted."""
    held = []
    if over.bytes > over.quota.bytes:
        held.append(f"{over.bytes:,} of {over.quota.bytes:,} bytes")
    if over.files > over.quota.files:
        held.append(f"{over.files:,} of {over.quota.files:,} files")
    return f"{_OVER_QUOTA}: it holds {' and '.join(held)}"


def with_quota(words: str, over: OverQuota | None) -> str:
    """An explanation, and what its reader must know of /mnt/files as it is now."""
    if over is None:
        return words
    told = "" if _OVER_QUOTA in words else f"{over_quota_words(over)}. "
    return f"{words} {told}{_DELETE}".strip()


def explanation(
    outcome: Outcome,
    limit_s: float,
    lost: str,
    place: Place,
    end: ProcessExit | None,
    restored: Restored | None = None,
    *,
    why_interrupted: str = "",
) -> str:
    """For a cell whose end its own code did not decide; `lost` is why its memory is gone, if it is."""
    after = "Variables keep the values that they had at that moment."
    if lost:
        after = after_a_restore(restored, end) if restored else after_a_loss(place, end)
    match outcome:
        case Outcome.TIMED_OUT:
            what = f"The cell ran longer than its limit of {limit_s:g} s"
            what += f"; {lost}." if lost else " and was interrupted."
            return f"{what} {after} {_more_time(limit_s, place.most_s)}"
        case Outcome.INTERRUPTED:
            then = f"; {lost}" if lost else ""
            return f"The cell was interrupted{_by(why_interrupted)}{then}. {after}"
        case Outcome.LOST:
            return f"The cell did not come to its end: {lost}. {after}"
        case _:
            return ""


def _by(why: str) -> str:
    return f": {why}" if why else " by request"


def _more_time(limit_s: float, most_s: float) -> str:
    longer = f", or ask for a longer limit (up to {most_s:g} s)" if limit_s < most_s else ""
    return f"Do it in smaller steps or in the background{longer}."


def command_explanation(
    outcome: Outcome, limit_s: float, end: ProcessExit, place: Place, *, why_interrupted: str = ""
) -> str:
    """The same for a command."""
    if outcome is Outcome.LOST:
        return f"The command did not come to its end: {how_it_ended(end)}. {after_a_loss(place, end)}"
    if outcome is Outcome.INTERRUPTED:
        return f"The command and everything in its process group were interrupted{_by(why_interrupted)}."
    if outcome is Outcome.TIMED_OUT:
        return (
            f"The command ran longer than its limit of {limit_s:g} s and was ended with everything in its process "
            f"group, as `timeout` does with exit code 124. {_more_time(limit_s, place.most_s)}"
        )
    if Limit.MEMORY in end.limits:
        return "It ran out of memory. Work on less at once, or use a larger tier."
    return ""
