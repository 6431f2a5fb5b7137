"""One JSON line per event on stderr. Names, numbers and codes only: never code, outputs, secrets, queries, or messages
of exceptions, which quote what they are about; not at any level.
"""

from __future__ import annotations

import datetime
import json
import logging
import os
import sys
import traceback
from collections.abc import Callable

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}
# The last calls of a traceback say where it broke.
_FRAMES = 12


def to_stderr(line: str) -> None:
    """One write, so that lines of several threads stay whole."""
    sys.stderr.write(line)
    sys.stderr.flush()


class Log:
    """Where events go. Shared by everything in the process."""

    def __init__(self, level: str = "info", write: Callable[[str], None] = to_stderr) -> None:
        self._least = _LEVELS[level]
        self._write = write

    def at(self, level: str) -> bool:
        """Whether an event of this level is written."""
        return _LEVELS[level] >= self._least

    def event(self, level: str, event: str, **fields: str | int | float | None) -> None:
        """Write it, without the fields that are empty."""
        if not self.at(level):
            return
        now = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        told = {name: value for name, value in fields.items() if value is not None and value != ""}
        self._write(json.dumps({"time": now, "level": level, "event": event, **told}) + "\n")

    def defect(self, event: str, problem: BaseException, request_id: str = "") -> None:
        """An exception that nobody expected: what it is and where, without its message."""
        self.event("error", event, request_id=request_id, problem=_kind(problem), where=_where(problem))


class JsonHandler(logging.Handler):
    """What libraries log, as events of ours."""

    def __init__(self, log: Log) -> None:
        super().__init__()
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        """Of a record with an exception the kind and the place; of others what the library says."""
        level = record.levelname.lower() if record.levelname.lower() in _LEVELS else "error"
        problem = record.exc_info[1] if record.exc_info else None
        if problem is not None:
            self._log.defect("library", problem)
        else:
            self._log.event(level, "library", logger=record.name, said=record.getMessage()[:500])


def _kind(problem: BaseException) -> str:
    name = type(problem).__name__
    # The text of an error number is the system's own.
    return f"{name} {os.strerror(problem.errno)}" if isinstance(problem, OSError) and problem.errno else name


def _where(problem: BaseException) -> str:
    frames = traceback.extract_tb(problem.__traceback__)[-_FRAMES:]
    return " > ".join(f"{os.path.basename(frame.filename)}:{frame.lineno} {frame.name}" for frame in frames)
