"""What the tests of files in an object store share."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from workbench.contracts.mounts import MountStore
from workbench.data_folder import DataFolder
from workbench.model.ids import MountId
from workbench.model.mounts import FilePath, Quota
from workbench.storage.opening import FilesPlace, open_mounts

MINE = MountId("mine")
ROOMY = Quota(bytes=2 * 2**30, files=100_000)
MIB = 2**20


@contextlib.asynccontextmanager
async def opened(data: DataFolder, place: FilesPlace, *, close_s: float = 60.0) -> AsyncIterator[MountStore]:
    """A store with MINE prepared, closed afterwards."""
    store = open_mounts(data, place, close_s=close_s)
    try:
        await store.prepare(MINE)
        yield store
    finally:
        await store.aclose()


async def put(store: MountStore, path: str, content: bytes, *, mount: MountId = MINE) -> None:
    """Upload it, and leave nothing staged."""
    name = f"up-{os.urandom(6).hex()}"
    async with store.stage(mount, FilePath(path), name=name, quota=ROOMY, size=len(content)) as staged:
        try:
            await staged.write(content)
            await staged.commit()
        finally:
            await staged.discard()


@dataclass
class Road:
    """Between a store and its server."""

    endpoint: str
    loses_answers: bool = False
    """what is asked for is done, and nobody is told"""


@contextlib.contextmanager
def road_to(endpoint: str) -> Iterator[Road]:
    """A server that passes everything on, both ways."""
    where = urlsplit(endpoint)
    listening = socket.create_server(("127.0.0.1", 0))
    road = Road(f"http://127.0.0.1:{listening.getsockname()[1]}")
    open_sockets: list[socket.socket] = []
    threads: list[threading.Thread] = []

    def start(work: object, *args: object) -> None:
        assert callable(work)
        threads.append(threading.Thread(target=work, args=args))
        threads[-1].start()

    def pump(source: socket.socket, target: socket.socket, *, answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if answers and road.loses_answers:
                    break
                target.sendall(data)
        for one in (source, target):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listening.accept()
                server = socket.create_connection((where.hostname or "", where.port or 80))
                open_sockets.extend((client, server))
                start(lambda a=client, b=server: pump(a, b, answers=False))
                start(lambda a=client, b=server: pump(b, a, answers=True))

    start(accept)
    try:
        yield road
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        threads[0].join()
        for one in open_sockets:
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
        for thread in threads:
            thread.join()
        for one in (listening, *open_sockets):
            one.close()
