"""Find the active host, or start one; and let a newer client send an older host into retirement."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from workbench import __version__
from workbench.data_folder import DataFolder
from workbench.errors import HostIncompatible, HostUnavailable
from workbench.host_client.connection import HostConnection
from workbench.settings import Settings
from workbench.wire import host as wire

# Importing the image's libraries from a cold disk, twice over.
_START_TIMEOUT_S = 240.0
_PAUSE_S = 0.02
_LAUNCH_TIMEOUT_S = 30.0
# `pid:start time` of a process that a host which we start is to end with; see cli/host.py.
ENDS_WITH = "OPEN_WORKBENCH_HOST_ENDS_WITH"
# BARRIER: a host that a server starts must not inherit the server's keys; held by tests/host/test_life.py.
_PASSED_ON = ("PATH", "HOME", "USER", "LANG", "TZ", "XDG_DATA_HOME", "XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS",
              ENDS_WITH)  # fmt: skip


async def connect(settings: Settings, version: str = __version__) -> HostConnection:
    """The active host; an older one is sent to drain, so that the caller can start its successor.

    Raises:
        HostUnavailable: there is none, or there was only an older one.
        HostIncompatible: it is newer than this client.
    """
    data = DataFolder(settings.data_dir)
    connection = await HostConnection.open(data.socket, version)
    greeting = connection.greeting
    if greeting.protocol > wire.PROTOCOL:
        await connection.aclose()
        raise HostIncompatible(
            f"the host speaks protocol {greeting.protocol} and this client {wire.PROTOCOL}: upgrade the client",
            {"host": greeting.host, "version": greeting.version},
        )
    if greeting.protocol < wire.PROTOCOL or _numbers(greeting.version) < _numbers(version):
        async with connection:
            await connection.ask(wire.Drain(), wire.Done)
        raise HostUnavailable(
            f"host {greeting.host} is of the older version {greeting.version}; it serves its sandboxes to their end",
            {"host": greeting.host},
        )
    return connection


async def connect_or_start(
    settings: Settings, environ: Mapping[str, str], version: str = __version__
) -> HostConnection:
    """The active host, started in the background if there is none.

    Raises:
        HostUnavailable: it could not be started, the message ends with what it said; or it is not ours to start.
    """
    try:
        return await connect(settings, version)
    except HostUnavailable:
        if not settings.start_host:
            raise
    log = settings.data_dir / "host.log"
    settings.data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    log.touch(mode=0o600)
    said_from = log.stat().st_size
    pid = _launch([*_own_scope(environ), sys.executable, "-m", "workbench", "host", "run"], settings, environ, log)
    deadline = time.monotonic() + _START_TIMEOUT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(HostUnavailable):
            return await connect(settings, version)
        # One that lost the race against another client's leaves at once, and the winner is about to listen.
        if not _runs(pid) and b"a host is active" not in _said(log, said_from):
            break
        await asyncio.sleep(_PAUSE_S)
    words = _said(log, said_from).decode("utf-8", "replace").strip().splitlines()
    raise HostUnavailable(f"the host did not start: {words[-1] if words else 'it said nothing'}", {"log": str(log)})


def _launch(command: list[str], settings: Settings, environ: Mapping[str, str], log: Path) -> int:
    """Start it as nobody's child: it outlives us, and whoever we are need not reap it. Returns its pid."""
    done = subprocess.run(
        ["/bin/sh", "-c", '"$@" >>"$0" 2>&1 & echo $!', str(log), *command],
        env={name: environ[name] for name in _PASSED_ON if name in environ} | settings.host_env(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        cwd="/",
        start_new_session=True,
        check=True,
        timeout=_LAUNCH_TIMEOUT_S,
    )
    return int(done.stdout)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


async def all_hosts(settings: Settings) -> list[HostConnection]:
    """Every living host of this data folder, the active one first; the caller closes them."""
    data = DataFolder(settings.data_dir)
    found = []
    for run in data.run_folders():
        with contextlib.suppress(HostUnavailable):
            found.append(await HostConnection.open(run.socket))
    return sorted(found, key=lambda connection: connection.greeting.draining)


def _said(log: Path, offset: int) -> bytes:
    with log.open("rb") as file:
        file.seek(offset)
        return file.read()[-4000:]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _own_scope(environ: Mapping[str, str]) -> list[str]:
    """Under systemd with version 2 groups an ordinary user gets a group of its own by asking its user manager."""
    manager = Path(environ.get("XDG_RUNTIME_DIR", "/nonexistent")) / "systemd" / "private"
    unified = Path("/sys/fs/cgroup/cgroup.controllers").exists()
    systemd_run = shutil.which("systemd-run", path=environ.get("PATH"))
    if os.geteuid() == 0 or not unified or systemd_run is None or not manager.exists():
        return []
    return [systemd_run, "--user", "--scope", "--quiet", "--collect", "-p", "Delegate=yes", "--"]
