"""A process's output on disk, as it came, to be read from any offset by anyone, also after the reader was away."""

from __future__ import annotations

import asyncio
import os
import shutil
from pathlib import Path

from workbench.contracts.engine import Process
from workbench.model.process import Stream


class Spool:
    """Two files, one a stream. Owned by the host's service."""

    def __init__(self, folder: Path, max_bytes: int) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._max_bytes = max_bytes
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._files = {stream: os.open(folder / stream, flags, 0o600) for stream in Stream}
        self._sizes = dict.fromkeys(Stream, 0)
        self.dropped = dict.fromkeys(Stream, 0)
        self.ended = False
        self._changed = asyncio.Event()

    async def fill(self, process: Process) -> None:
        """Take everything the process prints; a full spool counts what it drops and never makes the process wait."""
        try:
            async for chunk in process.output():
                self._append(chunk.stream, chunk.data)
        finally:
            self.ended = True
            self._tell()

    def _append(self, stream: Stream, data: bytes) -> None:
        room = max(0, self._max_bytes - self._sizes[stream])
        try:
            kept = os.pwrite(self._files[stream], data[:room], self._sizes[stream])
        except OSError:
            # The host's disk is full: output that cannot be kept is counted, and never read as the end of it.
            kept = 0
        self._sizes[stream] += kept
        self.dropped[stream] += len(data) - kept
        self._tell()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()

    async def read(self, stream: Stream, offset: int, limit: int, wait_s: float) -> tuple[bytes, bool]:
        """What there is from `offset`, after waiting for something new; and whether that is the last of it."""
        try:
            async with asyncio.timeout(wait_s):
                while offset >= self._sizes[stream] and not self.ended:
                    await self._changed.wait()
        except TimeoutError:
            pass
        if not self._files:
            return b"", True
        data = os.pread(self._files[stream], min(limit, max(0, self._sizes[stream] - offset)), offset)
        return data, self.ended and offset + len(data) >= self._sizes[stream]

    def close(self) -> None:
        """Remove it from disk; who still reads is told that it ended. May be called twice."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files.clear()
        self.ended = True
        self._tell()
        shutil.rmtree(self._folder, ignore_errors=True)
