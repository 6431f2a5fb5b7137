"""The files of one sandbox into another: a tar in each, and the host carries bytes between them.

The host opens nothing of either: what a guest made of its folders is read and written by programs that run where the
guest runs, with no more rights than it has.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from workbench.contracts.engine import OutputChunk, Process, Sandbox
from workbench.errors import Conflict, QuotaExceeded, SandboxUnavailable, WorkbenchError
from workbench.host.cells import mount_files
from workbench.model.ids import new_process_id
from workbench.model.process import ProcessExit, ProcessSpec, Stream

_SCRATCH = "/tmp"
# It shares its room with home and has the packed variables, so it comes first.
FOLDERS = (_SCRATCH, "/home/user", mount_files.INSIDE)
MOST_NOTE = 2000
# Of each tar; the rest is counted.
_MOST_COMPLAINTS, _MOST_COMPLAINT = 5, 160
# After SIGKILL; what lives longer is stuck in the system, and ends with its sandbox.
_END_S = 5.0
_READ = (
    "/bin/tar", "--create", "--file=-", "--format=posix", "--sparse", "--one-file-system", "--numeric-owner",
    "--quoting-style=escape", "--ignore-failed-read", ".",
)  # fmt: skip
# A folder that is there keeps its mode; one that cannot be written into gets its mode when it has been filled.
_WRITE = (
    "/bin/tar", "--extract", "--file=-", "--preserve-permissions", "--no-same-owner", "--no-overwrite-dir",
    "--delay-directory-restore", "--quoting-style=escape",
)  # fmt: skip
# 1 is a file that changed meanwhile, 2 one that could not be read or written; all others are in place.
_CODES = (0, 1, 2)
# The messages in one language, and no options by the sandbox's own variables.
_ENV = {"LC_ALL": "C", "TAR_OPTIONS": ""}
# What an engine that isolates nothing has instead of /tmp, which is everybody's there.
_IN_OWN_SCRATCH = ("/bin/sh", "-c", 'cd "$TMPDIR" && exec "$@"', "sh")
# How tar says that a disk is full, also when half of a block still fitted.
_FULL = ("No space left on device", "Disk quota exceeded", "Wrote only ")
_SAYS_NOTHING = ("Exiting with failure status", "Error is not recoverable", "Removing leading")


async def copy_files(source: Sandbox, target: Sandbox, *, limit_s: float) -> str:
    """Home, /tmp and /mnt/files, over what the target has there; what did not arrive as it is, in words.

    Raises:
        SandboxUnavailable: one of the two ended, or would not copy; some files may be in the target.
        QuotaExceeded: it took longer than `limit_s`, or more memory than there is; some files may be in the target.
    """
    try:
        async with asyncio.timeout(limit_s):
            notes = [await _copy_folder(source, target, folder) for folder in FOLDERS]
    except TimeoutError:
        raise QuotaExceeded(f"the files could not be copied in {limit_s:g} s; remove what is not needed") from None
    note = "; ".join(filter(None, notes))
    return note if len(note) <= MOST_NOTE else note[: MOST_NOTE - 1] + "…"


async def _copy_folder(source: Sandbox, target: Sandbox, folder: str) -> str:
    unread, unwritten = _Complaints(), _Complaints()
    reader = await source.start(_spec(source, folder, _READ, stdin=False))
    try:
        writer = await target.start(_spec(target, folder, _WRITE, stdin=True))
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(_carry(reader, writer, unread), name=f"copy {folder}")
                both.create_task(_listen(writer, unwritten), name=f"complaints about {folder}")
            ends = (await reader.wait(), await writer.wait())
        finally:
            await _end(writer)
    finally:
        await _end(reader)
    # The writer first: if it gave up, the reader was ended by us.
    _check(ends[1], target, folder, unwritten)
    _check(ends[0], source, folder, unread)
    return _told(folder, unread, unwritten)


def _spec(sandbox: Sandbox, folder: str, tar: tuple[str, ...], *, stdin: bool) -> ProcessSpec:
    if folder == _SCRATCH and not sandbox.description.isolated:
        return ProcessSpec(id=new_process_id(), argv=(*_IN_OWN_SCRATCH, *tar), env=_ENV, stdin=stdin)
    return ProcessSpec(id=new_process_id(), argv=tar, env=_ENV, cwd=folder, stdin=stdin)


async def _carry(reader: Process, writer: Process, said: _Complaints) -> None:
    """A chunk at a time: a writer that is slow makes the reader wait."""
    taking = True
    async with _output(reader) as chunks:
        async for chunk in chunks:
            if chunk.stream is Stream.STDERR:
                said.add(chunk.data)
            elif taking:
                try:
                    await writer.write_stdin(chunk.data)
                except Conflict:
                    # Its own end tells why.
                    taking = False
                    await _kill(reader)
    await writer.close_stdin()


async def _listen(writer: Process, said: _Complaints) -> None:
    async with _output(writer) as chunks:
        async for chunk in chunks:
            said.add(chunk.data)


@contextlib.asynccontextmanager
async def _output(process: Process) -> AsyncIterator[AsyncIterator[OutputChunk]]:
    chunks = process.output()
    try:
        yield chunks
    finally:
        if (close := getattr(chunks, "aclose", None)) is not None:
            await close()


async def _kill(process: Process) -> None:
    # Gone already, which its end will tell.
    with contextlib.suppress(WorkbenchError):
        await process.signal(signal.SIGKILL)


async def _end(process: Process) -> None:
    """Nothing happens to one that has ended."""
    await _kill(process)
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_END_S):
            await process.wait()


def _check(end: ProcessExit, sandbox: Sandbox, folder: str, said: _Complaints) -> None:
    if end.code in _CODES:
        return
    which = {"sandbox": sandbox.description.id, "folder": folder}
    if end.lost:
        raise SandboxUnavailable(f"a sandbox ended while {folder} was copied: {end.reason}", which)
    if end.limits:
        raise QuotaExceeded(f"{folder} could not be copied: {', '.join(end.limits)}", which)
    how = f"signal {end.signal}" if end.signal is not None else f"exit code {end.code}"
    raise SandboxUnavailable(f"{folder} could not be copied: tar ended with {how}{said.last()}", which)


@dataclass(slots=True)
class _Complaints:
    """What a tar said, a line for a file: the first few, and how many more."""

    kept: list[str] = field(default_factory=list)
    more: int = 0
    _rest: bytes = b""

    def add(self, data: bytes) -> None:
        *lines, rest = (self._rest + data).split(b"\n")
        # A line without an end is a name that is longer than names are.
        self._rest = rest[: 8 * _MOST_COMPLAINT]
        for line in lines:
            # After the program's own name.
            text = line.decode("utf-8", "replace").partition(": ")[2][:_MOST_COMPLAINT]
            if not text or text.startswith(_SAYS_NOTHING):
                continue
            if len(self.kept) < _MOST_COMPLAINTS:
                self.kept.append(text.removeprefix("./"))
            else:
                self.more += 1

    def last(self) -> str:
        return f": {self.kept[-1]}" if self.kept else ""


def _told(folder: str, *said: _Complaints) -> str:
    kept = [text for one in said for text in one.kept]
    if not kept:
        return ""
    more = sum(one.more for one in said)
    room = " (there is no room for it in the copy)" if any(word in text for text in kept for word in _FULL) else ""
    return f"not all of {folder} was copied as it is{room}: {', '.join(kept)}{f', and {more} more' if more else ''}"
