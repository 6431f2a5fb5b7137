"""Reading one file: looks at it, has a worker read it, and outlives a worker that hangs, crashes or takes too much."""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import stat
import subprocess
import sys
import time
from dataclasses import dataclass, field
from typing import Any

from workbench_guest.extract import limits
from workbench_guest.extract.values import Extracted, Unreadable

_ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_CHUNK = 1024 * 1024


def extract(path: str | os.PathLike[str], *, page_s: int = limits.PAGE_S, total_s: float = limits.TOTAL_S) -> Extracted:
    """The text of a file, within so many seconds a page and in all. Never raises because of what the file is."""
    name = os.fspath(path)
    try:
        _look(name)
    except Unreadable as problem:
        return Extracted(error=str(problem))
    return _Reading(path=name, page_s=page_s, total_s=total_s).run()


def _look(path: str) -> None:
    try:
        # Not blocking: opening a FIFO would wait for a writer, and a device may do anything.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except (OSError, ValueError) as problem:
        raise Unreadable(_why_not_opened(path, problem)) from None
    try:
        status = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    if stat.S_ISDIR(status.st_mode):
        raise Unreadable(f"{path} is a folder: give the path of one file in it")
    if not stat.S_ISREG(status.st_mode):
        raise Unreadable(f"{path} is not a regular file: copy what it gives into a file, and give that")
    if not status.st_size:
        raise Unreadable(f"{path} is empty: check that what wrote it has finished")
    if status.st_size > limits.MAX_FILE_BYTES:
        most = limits.MAX_FILE_BYTES // limits.MIB
        size = status.st_size // limits.MIB
        raise Unreadable(f"{path} is too large: {size} MB, at most {most} MB are read; split it, or read it by code")


def _why_not_opened(path: str, problem: OSError | ValueError) -> str:
    if not isinstance(problem, OSError):
        return f"{path!r} is not a path: it holds a NUL character; check what made it"
    if problem.errno == errno.ENOENT:
        beside = os.path.dirname(path) or "."
        return f"no such file: {path}; list the folder {beside} to see what is there"
    if problem.errno == errno.ELOOP:
        return f"{path} is a symbolic link that leads to itself: give the path of the file it was meant for"
    return f"{path} cannot be opened: {os.strerror(problem.errno or 0)}; check its permissions and its path"


@dataclass(slots=True)
class _Reading:
    """What has been read of one file, by however many workers that took."""

    path: str
    page_s: int
    total_s: float
    texts: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    kind: str = ""
    pages: int = 0
    resumable: bool = False
    next_page: int = 0
    """the one that the worker is at, counted from 0"""
    done: bool = False

    def run(self) -> Extracted:
        deadline = time.monotonic() + self.total_s
        failed = 0
        while True:
            ended = self._one_worker(deadline)
            if self.done:
                break
            failed += 1
            self.warnings.append(self._why_not_read(ended))
            self.next_page += 1
            if ended is None or not self.resumable or self.next_page >= self.pages:
                break
            if failed >= limits.MAX_FAILED_PAGES:
                self.warnings.append(f"the pages from {self.next_page + 1} on are not read, as so many failed")
                break
        text = "".join(self.texts).strip("\n")
        error = "; ".join(dict.fromkeys(self.warnings))
        return Extracted(text=text, error=error, pages=self.pages, kind=self.kind)

    def _one_worker(self, deadline: float) -> int | None:
        """Read until it is done or gone; its exit code, or None if all the time is used up."""
        command = [sys.executable, "-P", "-m", "workbench_guest.extract.worker", self.path, str(self.next_page)]
        command.append(str(self.page_s))
        # One thread: more do not fit the tier, and make tesseract slower.
        env = {**os.environ, "PYTHONPATH": _ROOT, "PYTHONUTF8": "1", "OMP_THREAD_LIMIT": "1"}
        worker = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, start_new_session=True
        )
        assert worker.stdout is not None
        try:
            return worker.wait(limits.STOP_S) if self._listen(worker.stdout.fileno(), deadline) else None
        except subprocess.TimeoutExpired:
            return -signal.SIGALRM
        finally:
            if worker.poll() is None:
                os.killpg(worker.pid, signal.SIGKILL)
            worker.wait()
            worker.stdout.close()

    def _listen(self, descriptor: int, deadline: float) -> bool:
        """Take what the worker tells, until it closes its side; False if the time was used up before."""
        held = bytearray()
        while True:
            wait = min(self.page_s + limits.STOP_S, deadline - time.monotonic())
            if wait <= 0 or not select.select([descriptor], [], [], wait)[0]:
                return deadline - time.monotonic() > 0
            if not (chunk := os.read(descriptor, _CHUNK)):
                return True
            held += chunk
            while (end := held.find(b"\n")) >= 0:
                self._take(json.loads(held[:end]))
                del held[: end + 1]

    def _take(self, told: dict[str, Any]) -> None:
        if "kind" in told:
            self.kind = told["kind"]
        if "pages" in told:
            self.pages, self.resumable = told["pages"], told["resumable"]
        if "text" in told:
            if told["text"]:
                self.texts += (told["after"], told["text"])
            self.next_page += 1
        if told.get("warning"):
            self.warnings.append(told["warning"])
        self.done = self.done or "done" in told

    def _why_not_read(self, ended: int | None) -> str:
        of = f"page {self.next_page + 1} of {self.path}" if self.resumable else self.path
        if ended is None:
            so_far = f"at {of}" if self.resumable else f"with {self.path}"
            return f"stopped {so_far} after {self.total_s:.0f} s: split the file, and read the parts"
        if ended == -signal.SIGALRM:
            after = f"{of} was given up after {self.page_s} s: its text is missing"
            return f"{after}; look at it as a picture" if self.resumable else f"{after}; split it, or read it by code"
        if ended == -signal.SIGKILL:
            return f"{of} needs more memory than there is: its text is missing; use a larger tier or a smaller file"
        return f"{of} cannot be read, it ended the reader ({ended}): the file is likely broken; make it again"
