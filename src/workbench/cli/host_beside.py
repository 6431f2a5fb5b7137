"""A host that lives as long as a command of ours: for `serve --with-host` and `--embedded`."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import signal
import threading
import time
from collections.abc import AsyncIterator, Mapping
from pathlib import Path

from workbench.data_folder import DataFolder
from workbench.errors import HostUnavailable
from workbench.host_client.find import ENDS_WITH, all_hosts, connect, connect_or_start
from workbench.settings import Settings
from workbench.wire import host as wire

# As `workbench host stop` has it: sandboxes end in milliseconds, a machine without a free core takes longer.
_STOP_S = 60.0
_LOOK_S = 0.02


@contextlib.asynccontextmanager
async def host_beside(settings: Settings, environ: Mapping[str, str]) -> AsyncIterator[bool]:
    """Have a host run; whether it is ours, and ends with this. One that ran before is left alone.

    Raises:
        HostUnavailable: it could not be started.
    """
    before = await _living(settings)
    if await _runs(settings):
        yield False
        return
    starting = asyncio.create_task(_start(settings, environ), name="starting the host")
    try:
        await asyncio.shield(starting)
        yield True
    finally:
        # Also when we are to end while it starts: who does not listen yet cannot be told to leave.
        await asyncio.wait([starting])
        await _stop_all_but(before, settings)


async def _runs(settings: Settings) -> bool:
    try:
        async with await connect(settings):
            return True
    except HostUnavailable:
        return False


async def _start(settings: Settings, environ: Mapping[str, str]) -> None:
    async with await connect_or_start(settings, environ):
        pass


async def _living(settings: Settings) -> set[str]:
    found = set()
    for connection in await all_hosts(settings):
        async with connection:
            found.add(connection.greeting.host)
    return found


async def _stop_all_but(spared: set[str], settings: Settings) -> None:
    """Also one that came in place of ours, should ours have crashed."""
    leaving = []
    for connection in await all_hosts(settings):
        async with connection:
            if connection.greeting.host not in spared:
                with contextlib.suppress(HostUnavailable):
                    await connection.ask(wire.Stop(), wire.Done)
                leaving.append(DataFolder(settings.data_dir).hosts / connection.greeting.host)
    deadline = time.monotonic() + _STOP_S
    while any(folder.is_dir() for folder in leaving):
        if time.monotonic() > deadline:
            raise HostUnavailable(f"the host has not left after {_STOP_S:.0f} s; see {settings.data_dir}/host.log")
        await asyncio.sleep(_LOOK_S)


def ending_with_us(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for hosts that are to end by themselves when this process does, however it ends."""
    return {**environ, ENDS_WITH: f"{os.getpid()}:{_start_time(os.getpid())}"}


def end_with(process: str) -> threading.Event:
    """Have this process get SIGTERM when another is gone; the event tells that it is, perhaps already."""
    gone = threading.Event()
    pid, _, started = process.partition(":")
    try:
        watched = os.pidfd_open(int(pid))
    except ProcessLookupError:
        gone.set()
        return gone
    if _start_time(int(pid)) != started:
        # Its number is another's by now.
        os.close(watched)
        gone.set()
        return gone

    def watch() -> None:
        poll = select.poll()
        poll.register(watched, select.POLLIN)
        poll.poll()
        gone.set()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="watching the server", daemon=True).start()
    return gone


def _start_time(pid: int) -> str:
    """Tells it from another process that has its number later."""
    try:
        return Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""
