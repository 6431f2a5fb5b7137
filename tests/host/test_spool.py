"""Output on disk: from any offset, up to a limit, and never in the way of who prints."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from workbench.contracts.engine import OutputChunk
from workbench.host.spool import Spool
from workbench.model.process import ProcessExit, Stream


class Printing:
    """A process that prints what it is given; the only stand-in here, for an edge that has its own contract suite."""

    def __init__(self, chunks: list[OutputChunk]) -> None:
        self._chunks = chunks

    async def output(self) -> AsyncIterator[OutputChunk]:
        for chunk in self._chunks:
            yield chunk
            await asyncio.sleep(0)

    async def wait(self) -> ProcessExit:
        return ProcessExit(code=0)

    async def write_stdin(self, data: bytes) -> None:
        raise NotImplementedError

    async def close_stdin(self) -> None:
        raise NotImplementedError

    async def signal(self, number: int) -> None:
        raise NotImplementedError


def out(data: bytes) -> OutputChunk:
    return OutputChunk(stream=Stream.STDOUT, data=data)


async def test_what_is_over_the_limit_is_counted_and_what_is_under_it_kept(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", max_bytes=10)
    await spool.fill(Printing([out(b"12345678"), out(b"90abc"), out(b"def")]))
    assert await spool.read(Stream.STDOUT, 0, 100, 0) == (b"1234567890", True)
    assert spool.dropped == {Stream.STDOUT: 6, Stream.STDERR: 0}
    spool.close()
    assert not (tmp_path / "spool").exists()


async def test_a_reader_waits_for_what_comes_and_then_for_the_end(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", max_bytes=100)
    reading = asyncio.create_task(spool.read(Stream.STDERR, 0, 100, 30))
    await asyncio.sleep(0)
    filling = asyncio.create_task(spool.fill(Printing([out(b"x"), OutputChunk(stream=Stream.STDERR, data=b"y")])))
    assert (await reading)[0] == b"y"
    assert await spool.read(Stream.STDERR, 1, 100, 30) == (b"", True)
    await filling
    spool.close()


async def test_a_reader_that_waited_long_enough_gets_nothing_and_no_end(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", max_bytes=100)
    assert await spool.read(Stream.STDOUT, 0, 100, 0.01) == (b"", False)
    spool.close()


async def test_a_full_disk_is_counted_and_never_read_as_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spool = Spool(tmp_path / "spool", max_bytes=100)
    real, left = os.pwrite, [5]

    def pwrite(descriptor: int, data: bytes, offset: int) -> int:
        if not left[0]:
            raise OSError(errno.ENOSPC, "No space left on device")
        taken = data[: left[0]]
        left[0] -= len(taken)
        return real(descriptor, taken, offset)

    monkeypatch.setattr(os, "pwrite", pwrite)
    await spool.fill(Printing([out(b"abc"), out(b"defgh"), out(b"ij")]))
    assert await spool.read(Stream.STDOUT, 0, 100, 0) == (b"abcde", True)
    assert spool.dropped[Stream.STDOUT] == 5
    spool.close()
