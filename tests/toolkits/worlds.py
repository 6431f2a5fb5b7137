"""Sources as they are made in a workbench, with what runs behind them, and calls to them."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

from tests.unit.core.router.sources import session

from workbench.egress.policy import AddressPolicy
from workbench.model.added import AddedToolkit, added_toolkit
from workbench.model.toolkit import ToolCall
from workbench.toolkits.opening import AddedSource, Ground, Opener

SERVERS = Path(__file__).parent / "servers"
NODE_PARTS = Path(__file__).resolve().parents[1] / "node" / "node_modules"
PLAIN = [sys.executable, str(SERVERS / "plain.py")]
LOOPBACK = "127.0.0.0/8"
_WAIT_S = 30.0


def lying(how: str) -> list[str]:
    """The server that is as wrong as this."""
    return [sys.executable, str(SERVERS / "lying.py"), how]


def from_npm(package: str, *arguments: str) -> list[str]:
    """A server that npm has."""
    node, program = NODE_PARTS / ".bin" / "node", NODE_PARTS / "@modelcontextprotocol" / package / "dist" / "index.js"
    assert program.exists(), "scripts/install-node-parts brings it"
    return [str(node), str(program), *arguments]


def added(slug: str, **given: Any) -> AddedToolkit:
    return added_toolkit(slug, given, project=None)


@contextlib.asynccontextmanager
async def source_of(folder: Path, toolkit: AddedToolkit, *, allow: str = LOOPBACK) -> AsyncIterator[AddedSource]:
    """As the workbench makes it."""
    opener = Opener(Ground(policy=AddressPolicy.parse(allow, "WORKBENCH_TOOLKITS_ALLOW"), folder=folder / "toolkits"))
    source = opener.open(toolkit)
    try:
        yield source
    finally:
        await source.aclose()
        await opener.aclose()


def call(slug: str, **arguments: Any) -> ToolCall:
    return ToolCall(slug=slug, arguments=arguments, session=session())


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@contextlib.contextmanager
def listening(command: list[str], port: int, **more: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A program that listens at a port of loopback."""
    process = subprocess.Popen(command, **more)
    try:
        until = time.monotonic() + _WAIT_S
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None, "it has ended"
            assert time.monotonic() < until, "it does not listen"
            time.sleep(0.05)
        yield process
    finally:
        process.kill()
        process.wait(_WAIT_S)
