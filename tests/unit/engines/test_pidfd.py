"""Waiting for an end that may not come."""

from __future__ import annotations

import asyncio
import fcntl
import os
import subprocess

from workbench.engines.pidfd import exited, has_exited


async def test_a_wait_ends_with_the_process_or_with_its_time() -> None:
    child = subprocess.Popen(["/bin/sleep", "1000"])
    pidfd = os.pidfd_open(child.pid)
    try:
        assert not await exited(pidfd, within_s=0.01)
        child.kill()
        async with asyncio.timeout(10):
            assert await exited(pidfd, within_s=10)
            assert await exited(pidfd, within_s=None)
    finally:
        os.close(pidfd)
        child.kill()
        child.wait()


def test_a_descriptor_may_have_any_number() -> None:
    """A host has a dozen for each sandbox."""
    child = subprocess.Popen(["/bin/sleep", "1000"])
    low = os.pidfd_open(child.pid)
    pidfd = fcntl.fcntl(low, fcntl.F_DUPFD_CLOEXEC, 1024)
    try:
        assert not has_exited(pidfd)
        child.kill()
        assert has_exited(pidfd, within_s=10)
    finally:
        os.close(low)
        os.close(pidfd)
        child.kill()
        child.wait()
