"""Bytes from a socket into a file, without a way through our memory."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import select
import time
from collections.abc import Iterator

_PIPE_BYTES = 1024 * 1024
# The next bytes of a fast sender are there sooner than a thread that was left is come back to. A slow one is not
# waited for, and nobody has a thread for long.
_WAIT_MS, _FAST_BYTES = 5, 256 * 1024
_BUDGET_S = 0.05


class WriteFailed(Exception):
    """The file could not be written."""

    def __init__(self, why: OSError) -> None:
        super().__init__(str(why))
        self.why = why


def moved(source: int, target: int, offset: int, most: int) -> Iterator[int]:
    """Move what the source has, at most so many bytes, to the offset of the target; tell how many after each step.
    It ends soon in any case.

    Raises:
        EOFError: the source is at its end.
        WriteFailed: the target is what failed.
        OSError: the source is.
    """
    poll = select.poll()
    poll.register(source, select.POLLIN)
    with _pipe() as (out, into):
        left, until = most, time.monotonic() + _BUDGET_S
        # BARRIER: who sends byte by byte, on a few connections, would have every thread there is; held by
        # tests/unit/storage/test_moving.py.
        while left and (left == most or time.monotonic() < until):
            try:
                count = _step(source, (out, into), target, offset, min(left, _PIPE_BYTES))
            except BlockingIOError:
                if most - left < _FAST_BYTES or not poll.poll(_WAIT_MS):
                    return
                continue
            if not count:
                raise EOFError
            offset += count
            left -= count
            yield count


def _step(source: int, pipe: tuple[int, int], target: int, offset: int, most: int) -> int:
    out, into = pipe
    try:
        count = os.splice(source, into, most)
    except OSError as problem:
        if problem.errno != errno.EINVAL:
            raise
        data = os.read(source, most)
        _written(target, data, offset)
        return len(data)
    left = count
    while left:
        try:
            done = os.splice(out, target, left, offset_dst=offset + count - left)
        except OSError as problem:
            if problem.errno != errno.EINVAL:
                raise WriteFailed(problem) from problem
            # A file system that takes nothing from a pipe.
            data = os.read(out, left)
            _written(target, data, offset + count - left)
            done = len(data)
        left -= done
    return count


def _written(target: int, data: bytes, offset: int) -> None:
    rest = memoryview(data)
    try:
        while rest:
            done = os.pwrite(target, rest, offset)
            offset, rest = offset + done, rest[done:]
    except OSError as problem:
        raise WriteFailed(problem) from problem


@contextlib.contextmanager
def _pipe() -> Iterator[tuple[int, int]]:
    out, into = os.pipe()
    try:
        # An ordinary user has room for a few large ones; a small one is slower.
        with contextlib.suppress(OSError):
            fcntl.fcntl(into, fcntl.F_SETPIPE_SZ, _PIPE_BYTES)
        yield out, into
    finally:
        os.close(out)
        os.close(into)
