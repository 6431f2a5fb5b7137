"""Folders that packages are put into: one writer at a time, and readers see the old or the new and nothing between.

What is in them is left to the installers.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import errno
import fcntl
import os
import shutil
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any, TypeVar

from workbench.contracts.packages import refusal

T = TypeVar("T")

_LOCK_PAUSE_S = 0.05
# Between two looks at what a package manager has written so far.
_WATCH_PAUSE_S = 0.5
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_STAGED = ".staged-"


@contextlib.asynccontextmanager
async def locked(path: Path) -> AsyncIterator[None]:
    """While no other task or process has it. Who waits is bounded by whoever waits for it.

    The file must not be where a sandbox sees it: a lock can be held by who may only read.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                await asyncio.sleep(_LOCK_PAUSE_S)
        yield
    finally:
        os.close(descriptor)


@contextlib.asynccontextmanager
async def staged(beside: Path) -> AsyncIterator[Path]:
    """A new folder on the same file system as `beside`, gone afterwards, with those that a killed process left there.

    To be used under the lock of `beside`.
    """
    folder = await in_thread(_begun, beside)
    try:
        yield folder
    finally:
        await in_thread(shutil.rmtree, folder, True)


def _begun(beside: Path) -> Path:
    beside.parent.mkdir(parents=True, exist_ok=True)
    prefix = f"{_STAGED}{beside.name}-"
    for left in beside.parent.glob(f"{prefix}*"):
        shutil.rmtree(left, ignore_errors=True)
    folder = beside.parent / f"{prefix}{uuid.uuid4().hex[:12]}"
    folder.mkdir()
    # Whatever this process's umask is: sandboxes read it as another user.
    folder.chmod(0o755)
    return folder


def swap(new: Path, current: Path) -> None:
    """`new` is where `current` was, in one step; what was there, if anything, is where `new` was."""
    try:
        _rename(new, current, _RENAME_EXCHANGE)
    except OSError as problem:
        if problem.errno == errno.ENOENT:
            new.rename(current)
        elif problem.errno in (errno.EINVAL, errno.ENOSYS):
            # A file system that cannot exchange: for a moment there is nothing, and never half of something.
            old = current.with_name(f"{new.name}-old")
            current.rename(old)
            new.rename(current)
            old.rename(new)
        else:
            raise


def _rename(old: Path, new: Path, flags: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.renameat2(_AT_FDCWD, os.fsencode(old), _AT_FDCWD, os.fsencode(new), ctypes.c_uint(flags)) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), str(new))


def weight(folder: Path) -> int:
    """Bytes of all files below, each counted once."""
    seen: set[int] = set()
    total = 0
    for where, _, files in os.walk(folder):
        for name in files:
            with contextlib.suppress(FileNotFoundError):
                status = os.lstat(os.path.join(where, name))
                if status.st_ino not in seen:
                    seen.add(status.st_ino)
                    total += status.st_size
    return total


def check_weight(folder: Path, most: int) -> None:
    """Raises: PackageRefused if it weighs more."""
    if (bytes_ := weight(folder)) > most:
        raise refusal(
            f"too large: a session's packages of one language may weigh {most / 1e6:,.0f} MB, and with this they would "
            f"weigh at least {bytes_ / 1e6:,.0f} MB"
        )


async def watched(work: Coroutine[Any, Any, T], folder: Path, most: int) -> T:
    """What the work gives; it is cancelled once the folder, which it writes to, weighs more. Raises: PackageRefused."""
    task = asyncio.create_task(work)
    try:
        while True:
            done, _ = await asyncio.wait([task], timeout=_WATCH_PAUSE_S)
            await asyncio.to_thread(check_weight, folder, most)
            if done:
                return task.result()
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([task])


@contextlib.asynccontextmanager
async def within(seconds: float, what: str) -> AsyncIterator[None]:
    """Raises: PackageRefused after that long."""
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise refusal(f"{what} took longer than {seconds:g} s and was given up") from None


async def in_thread(work: Callable[..., T], *arguments: object) -> T:
    """What the work gives. A thread cannot be cancelled: who is waits for it: nothing is taken away under it."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *arguments))
    try:
        return await asyncio.shield(running)
    except asyncio.CancelledError:
        await asyncio.wait([running])
        raise
