"""Whoever speaks to the host owns every sandbox: only its own user and root may."""

from __future__ import annotations

import os
import stat
import subprocess
from pathlib import Path

import pytest
from tests.host.conftest import host, settings

from workbench.host_client.connection import HostConnection
from workbench.settings import Settings
from workbench.wire import host as wire

pytestmark = pytest.mark.isolation
__all__ = ["host", "settings"]

_KNOCK = """
import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.settimeout(20)
    s.connect(sys.argv[1])
    try:
        s.sendall(bytes.fromhex(sys.argv[2]))
        sys.exit(0 if s.recv(1) else 3)
    except ConnectionError:
        sys.exit(3)
"""


async def test_the_data_folder_and_the_socket_are_for_their_owner_alone(
    host: HostConnection, settings: Settings
) -> None:
    run = settings.data_dir / "hosts" / host.greeting.host
    for path, mode in ((settings.data_dir, 0o700), (run, 0o700), (run / "host.sock", 0o600)):
        assert stat.S_IMODE(path.stat().st_mode) == mode, path


async def test_another_user_who_reaches_the_socket_is_not_answered(host: HostConnection, settings: Settings) -> None:
    path = (settings.data_dir / "host.sock").resolve()
    hello = wire.frame(wire.Asked(number=1, request=wire.Hello(protocol=wire.PROTOCOL, version="0.1.0"))).hex()
    knock = ["/usr/bin/python3", "-c", _KNOCK, str(path), hello]
    assert subprocess.run(knock, check=False, timeout=60).returncode == 0, "the owner is answered"
    if os.geteuid() != 0:
        return  # an ordinary user cannot become another one; the modes above are the wall
    _open_up(path)
    stranger = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *knock]
    assert subprocess.run(stranger, check=False, timeout=60).returncode == 3


def _open_up(path: Path) -> None:
    """Take the modes away, so that only the check itself is left."""
    path.chmod(0o666)
    for parent in path.parents:
        if parent == Path("/tmp"):
            return
        parent.chmod(0o755)
