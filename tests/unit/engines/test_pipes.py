"""Pipes and the process that holds them, without a process."""

from __future__ import annotations

import asyncio
import os

import pytest

from workbench.contracts.engine import OutputChunk
from workbench.engines import pipes as pipes_module
from workbench.engines.limit_words import TAIL_BYTES
from workbench.engines.pipes import PipedProcess, Pipes
from workbench.errors import Conflict
from workbench.model.process import Limit, ProcessExit, Stream


def _open() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


async def _no_signal(_number: int) -> None:
    return


async def _all(pipes: Pipes) -> list[OutputChunk]:
    return [chunk async for chunk in pipes.chunks()]


async def test_output_ends_when_the_far_ends_are_closed_and_nothing_stays_open() -> None:
    before = _open()
    pipes = Pipes(stdin=False)
    os.write(pipes.far[1], b"out")
    os.write(pipes.far[2], b"err")
    pipes.close_far()
    assert await _all(pipes) == [
        OutputChunk(stream=Stream.STDOUT, data=b"out"), OutputChunk(stream=Stream.STDERR, data=b"err"),
    ]  # fmt: skip
    pipes.close()
    pipes.close()
    assert _open() == before


async def test_a_reader_that_leaves_early_closes_its_pipes() -> None:
    before = _open()
    pipes = Pipes(stdin=False)
    os.write(pipes.far[1], b"out")
    chunks = pipes.chunks()
    await anext(chunks)
    await chunks.aclose()  # type: ignore[attr-defined]
    pipes.close()
    assert _open() == before


async def test_running_out_of_descriptors_halfway_leaves_none_open(monkeypatch: pytest.MonkeyPatch) -> None:
    before, real, calls = _open(), os.pipe2, iter([True, True, False])

    def scarce(flags: int) -> tuple[int, int]:
        if next(calls):
            return real(flags)
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(os, "pipe2", scarce)
    with pytest.raises(OSError, match="Too many"):
        Pipes(stdin=True)
    assert _open() == before


async def test_the_tail_of_standard_error_is_bounded_and_costs_the_reader_nothing() -> None:
    pipes = Pipes(stdin=False)
    written = b"".join(b"%05d\n" % number for number in range(2000))
    os.write(pipes.far[2], written[:6000])
    os.write(pipes.far[1], b"out")
    assert pipes.stderr_tail() == written[:6000][-TAIL_BYTES:]
    os.write(pipes.far[2], written[6000:])
    assert pipes.stderr_tail() == written[-TAIL_BYTES:]
    pipes.close_far()
    chunks = await _all(pipes)
    assert b"".join(chunk.data for chunk in chunks if chunk.stream is Stream.STDERR) == written
    assert b"".join(chunk.data for chunk in chunks if chunk.stream is Stream.STDOUT) == b"out"


async def test_looking_at_the_tail_of_an_endless_writer_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    pipes = Pipes(stdin=False)
    monkeypatch.setattr(pipes_module, "_read", lambda _descriptor: b"x" * 65536)
    assert pipes.stderr_tail() == b"x" * TAIL_BYTES
    pipes.close()


async def test_a_reader_that_waits_is_woken_by_what_was_looked_at() -> None:
    pipes = Pipes(stdin=False)
    waiting = asyncio.ensure_future(_all(pipes))
    for _ in range(3):
        await asyncio.sleep(0)
    os.write(pipes.far[2], b"failed")
    pipes.stderr_tail()
    pipes.close_far()
    assert await asyncio.wait_for(waiting, 10) == [OutputChunk(stream=Stream.STDERR, data=b"failed")]


async def test_what_nobody_read_is_kept_without_descriptors() -> None:
    before = _open()
    pipes = Pipes(stdin=False)
    os.write(pipes.far[1], b"out")
    pipes.close_far()
    pipes.keep_unread()
    assert _open() == before
    assert await _all(pipes) == [OutputChunk(stream=Stream.STDOUT, data=b"out")]
    with pytest.raises(Conflict):
        await _all(pipes)


async def test_a_process_ends_once_and_names_what_its_last_words_speak_of() -> None:
    pipes = Pipes(stdin=True)
    process = PipedProcess(pipes, _no_signal)
    os.write(pipes.far[2], b"Too many open files")
    process.ended(ProcessExit(code=1, limits=(Limit.DISK,)))
    process.ended(ProcessExit(code=0))
    assert await process.wait() == ProcessExit(code=1, limits=(Limit.DISK, Limit.OPEN_FILES))
    assert pipes.stdin is None
    pipes.close()


@pytest.mark.parametrize("how", [ProcessExit(code=0), ProcessExit(code=None, lost=True, reason="closed")])
async def test_the_last_words_of_a_success_or_of_a_lost_process_are_not_read(how: ProcessExit) -> None:
    pipes = Pipes(stdin=False)
    process = PipedProcess(pipes, _no_signal)
    os.write(pipes.far[2], b"Too many open files")
    process.ended(how)
    assert await process.wait() == how
    pipes.close()


async def test_a_writer_that_waits_is_let_go_at_the_end_and_closes_the_input() -> None:
    pipes = Pipes(stdin=True)
    process = PipedProcess(pipes, _no_signal)
    writing = asyncio.ensure_future(process.write_stdin(b"x" * 10_000_000))
    for _ in range(5):
        await asyncio.sleep(0)
    process.ended(ProcessExit(code=0))
    with pytest.raises(Conflict):
        await asyncio.wait_for(writing, 10)
    assert pipes.stdin is None
    pipes.close()
