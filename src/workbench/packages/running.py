"""One run of a package manager: bounded in time and output, with everything that it started ended after it.

What it is asked for, and what its words mean, is left to the installers.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import shutil
import signal
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

# Of each of the two outputs; what is more is read and dropped, so that nobody waits for a full pipe.
MOST_OUTPUT_BYTES = 16 * 1024 * 1024
# After a program has ended or was killed, for what it still had in its pipes.
_DRAIN_S = 2.0
_CHUNK = 256 * 1024
# Sandboxes read what is made here, and do so as other users. By a shell: the server's event loop sets no umask.
_READABLE = ("/bin/sh", "-c", 'umask 022 && exec "$@"', "sh")
# Where the network is and whom to believe; of the package managers' own variables only those that hold no secret.
_PASSED = (
    "HOME", "PATH", "http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY",
    "SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a program ended, and what it said."""

    code: int
    """as by `subprocess`: negative for a signal"""
    stdout: str
    stderr: str


def environment(given: Mapping[str, str], **more: str) -> dict[str, str]:
    """For a package manager: of the variables of this process only those that it needs to find the network.

    BARRIER: package managers read what strangers wrote, and the server's own variables hold its secrets; held by
    tests/unit/packages/test_running.py.
    """
    passed = {name: given[name] for name in _PASSED if given.get(name)}
    return {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C.UTF-8", **passed, **more}


async def run(argv: Sequence[str], *, env: Mapping[str, str], cwd: Path, timeout_s: float) -> Ran:
    """To its end. Whatever it started is ended with it, also if the caller is cancelled. What it makes all may read.

    Raises:
        TimeoutError: it took longer.
        FileNotFoundError: there is no such program.
    """
    if shutil.which(argv[0], path=env.get("PATH")) is None:
        raise FileNotFoundError(f"there is no program {argv[0]}")
    # Pipes of our own: asyncio's are waited for together with the process, and one that it left behind may hold
    # them for ever.
    async with contextlib.AsyncExitStack() as stack:
        (out, said), (err, complained) = [await _piped(stack) for _ in range(2)]
        process = await asyncio.create_subprocess_exec(
            *_READABLE,
            *argv,
            env=dict(env),
            cwd=cwd,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            start_new_session=True,
        )
        out.close()
        err.close()
        try:
            async with asyncio.timeout(timeout_s):
                code = await process.wait()
        finally:
            _kill_group(process.pid)
            await asyncio.shield(_ended(process, said, complained))
    return Ran(code=code, stdout=_text(said), stderr=_text(complained))


async def _piped(stack: contextlib.AsyncExitStack) -> tuple[io.FileIO, asyncio.Task[bytes]]:
    """The end that is written to, and what will have been read at the other."""
    read, write = os.pipe()
    end = stack.enter_context(io.FileIO(write, "w"))
    reader = asyncio.StreamReader()
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), io.FileIO(read)
    )
    stack.callback(transport.close)
    reading = asyncio.create_task(_read(reader))
    stack.callback(reading.cancel)
    return end, reading


def _kill_group(leader: int) -> None:
    # The group's number is not given away while anybody is in it; if nobody is, there is nobody to kill. The leader has
    # been waited for only if it ended by itself, and then only a moment ago.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


async def _ended(process: asyncio.subprocess.Process, *said: asyncio.Task[bytes]) -> None:
    await process.wait()
    await asyncio.wait(said, timeout=_DRAIN_S)


def _text(reading: asyncio.Task[bytes]) -> str:
    return reading.result().decode(errors="replace") if reading.done() else ""


async def _read(pipe: asyncio.StreamReader) -> bytes:
    heard = bytearray()
    while piece := await pipe.read(_CHUNK):
        heard += piece[: MOST_OUTPUT_BYTES - len(heard)]
    return bytes(heard)
