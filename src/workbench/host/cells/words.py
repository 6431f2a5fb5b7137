"""What an agent is told when something other than its code decided how a call ended. True, and with a next step."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from workbench.model.execution import Outcome
from workbench.model.process import Limit, ProcessExit

RESTARTED = "the kernel was restarted by request"
NOT_INTERRUPTIBLE = "the kernel did not react to interrupts and had to be ended"
_NEW_KERNEL = "The next cell runs in a new kernel: import and define again what you need."


@dataclass(frozen=True, slots=True)
class Place:
    """What stays when a memory or a sandbox goes."""

    files_kept: bool
    """/mnt/files outlives the sandbox"""
    has_start_up: bool
    most_s: float
    """the longest limit that may be asked for"""


def how_it_ended(end: ProcessExit) -> str:
    """Why the kernel is gone, in a clause."""
    if end.lost:
        return f"the sandbox ended: {end.reason or 'nobody knows why'}"
    if Limit.MEMORY in end.limits:
        return "the kernel ran out of memory and was ended"
    if end.signal is not None:
        return f"the kernel was killed by signal {end.signal} ({signal_words(end.signal)})"
    return f"os._exit or a library ended the kernel's process with code {end.code}"


def signal_words(number: int) -> str:
    """`segmentation fault` and the like."""
    try:
        return (signal.strsignal(number) or "unknown").lower()
    except ValueError:
        return "unknown"


def after_a_loss(place: Place, end: ProcessExit | None) -> str:
    """What is gone, what is left, and what to do next."""
    if end is not None and end.lost:
        files = "/mnt/files is kept" if place.files_kept else "so is /mnt/files, which was made for it"
        return f"Variables, /home/user and /tmp are gone; {files}. The next call starts a new sandbox."
    start_up = " The session's start-up code is run in it first." if place.has_start_up else ""
    advice = ""
    if end is not None and Limit.MEMORY in end.limits:
        advice = " Work on less at once, free what is not needed, or use a larger tier."
    kept = "Variables are gone; files in /home/user and /mnt/files are still there."
    return f"{kept} {_NEW_KERNEL}{start_up}{advice}"


def explanation(outcome: Outcome, limit_s: float, lost: str, place: Place, end: ProcessExit | None) -> str:
    """For a cell whose end its own code did not decide; `lost` is why its memory is gone, if it is."""
    after = after_a_loss(place, end) if lost else "Variables keep the values that they had at that moment."
    match outcome:
        case Outcome.TIMED_OUT:
            what = f"The cell ran longer than its limit of {limit_s:g} s"
            what += f"; {lost}." if lost else " and was interrupted."
            return f"{what} {after} {_more_time(limit_s, place.most_s)}"
        case Outcome.INTERRUPTED:
            return f"The cell was interrupted by request. {after}"
        case Outcome.LOST:
            return f"The cell did not come to its end: {lost}. {after}"
        case _:
            return ""


def _more_time(limit_s: float, most_s: float) -> str:
    longer = f", or ask for a longer limit (up to {most_s:g} s)" if limit_s < most_s else ""
    return f"Do it in smaller steps or in the background{longer}."


def command_explanation(outcome: Outcome, limit_s: float, end: ProcessExit, place: Place) -> str:
    """The same for a command."""
    if outcome is Outcome.LOST:
        return f"The command did not come to its end: {how_it_ended(end)}. {after_a_loss(place, end)}"
    if outcome is Outcome.INTERRUPTED:
        return "The command and everything in its process group were interrupted by request."
    if outcome is Outcome.TIMED_OUT:
        return (
            f"The command ran longer than its limit of {limit_s:g} s and was ended with everything in its process "
            f"group, as `timeout` does with exit code 124. {_more_time(limit_s, place.most_s)}"
        )
    if Limit.MEMORY in end.limits:
        return "It ran out of memory. Work on less at once, or use a larger tier."
    return ""
