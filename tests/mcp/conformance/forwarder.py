"""Adds a key to every request, for clients that cannot send one. Nothing else of a request or an answer is touched."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine, Iterator
from concurrent.futures import Future
from typing import Any
from urllib.parse import urlsplit

_CONNECT_S = 10.0
_END_S = 10.0
_MOST_OF_A_HEAD = 64 * 1024


class _Forwarder:
    def __init__(self, host: str, port: int, key: str) -> None:
        self._host, self._port, self._key = host, port, key

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request: the connection ends with its answer, so that every one has its own head."""
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            async with asyncio.timeout(_CONNECT_S):
                back, forth = await asyncio.open_connection(self._host, self._port)
        except (asyncio.IncompleteReadError, OSError):
            writer.close()
            return
        forth.write(self._with_key(head))
        try:
            # Whoever hangs up first ends both: a client that is gone must be seen to be gone.
            await _first_of(_copy(reader, forth), _copy(back, writer))
        finally:
            for one in (forth, writer):
                one.close()

    def _with_key(self, head: bytes) -> bytes:
        first, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
        kept = [line for line in lines if not line.lower().startswith(b"connection:")]
        return b"\r\n".join(
            [first, *kept, b"Connection: close", b"Authorization: Bearer " + self._key.encode(), b"\r\n"]
        )


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(64 * 1024):
            writer.write(piece)
            await writer.drain()


async def _first_of(*copies: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.create_task(copy) for copy in copies]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@contextlib.contextmanager
def with_key(url: str, key: str) -> Iterator[str]:
    """An address on loopback that is `url` for who has the key; it ends with the block."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    forwarder = _Forwarder(parts.hostname, parts.port, key)
    started: Future[tuple[str, Callable[[], None]]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_until_told(forwarder, started)), name="forwarder")
    thread.start()
    address, stop = started.result(_CONNECT_S)
    try:
        yield address
    finally:
        stop()
        thread.join(_END_S)
        assert not thread.is_alive()


async def _until_told(forwarder: _Forwarder, started: Future[tuple[str, Callable[[], None]]]) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()

    def stop() -> None:
        loop.call_soon_threadsafe(over.set)

    listening = await asyncio.start_server(forwarder.serve, "127.0.0.1", 0, limit=_MOST_OF_A_HEAD)
    port = listening.sockets[0].getsockname()[1]
    started.set_result((f"http://127.0.0.1:{port}", stop))
    # Connections that are still open end with the loop.
    await over.wait()
    listening.close()
