"""Waiting for an end that may not come."""

from __future__ import annotations

import asyncio
import os
import subprocess

from workbench.engines.pidfd import exited


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
