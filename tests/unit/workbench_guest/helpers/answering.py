"""A real socket that speaks the protocol of calls, and breaks it as a test wants."""

from __future__ import annotations

import contextlib
import json
import secrets
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any

PATIENCE_S = 30.0
Behaviour = Callable[[socket.socket, dict[str, Any]], None]


def frame(payload: bytes) -> bytes:
    return struct.pack(">I", len(payload)) + payload


def answer(result: Any = None, error: str = "", code: str = "") -> bytes:
    return frame(json.dumps({"result": result, "error": error, "code": code}).encode())


def says(result: Any = None, error: str = "", code: str = "") -> Behaviour:
    """Always the same."""
    return lambda connection, _request: connection.sendall(answer(result, error, code))


def in_turn(*answers: bytes) -> Behaviour:
    """One after another; the last one stays."""
    waiting = list(answers)
    return lambda connection, _request: connection.sendall(waiting.pop(0) if len(waiting) > 1 else waiting[0])


class Answering:
    """Takes calls on threads of its own, as many as come."""

    def __init__(self, address: str, behaviour: Behaviour, backlog: int) -> None:
        self.address = address
        self.behaviour = behaviour
        self.requests: list[dict[str, Any]] = []
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._listening.bind("\0" + address[1:] if address.startswith("@") else address)
        self._listening.listen(backlog)
        self._threads: list[threading.Thread] = []
        self._open: list[socket.socket] = []
        self.closing = threading.Event()
        """for behaviours that never answer"""

    @property
    def operations(self) -> list[str]:
        return [request["operation"] for request in self.requests]

    @property
    def arguments(self) -> dict[str, Any]:
        """Of the only call."""
        (request,) = self.requests
        found: dict[str, Any] = request["arguments"]
        return found

    def start(self) -> None:
        self._begin(self._accept)

    def _begin(self, work: Callable[..., None], *arguments: Any) -> None:
        thread = threading.Thread(target=work, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self._open.append(connection)
                self._begin(self._serve, connection)

    def _serve(self, connection: socket.socket) -> None:
        # Who called may be gone by now.
        with connection, contextlib.suppress(OSError):
            (size,) = struct.unpack(">I", self._read(connection, 4))
            request = json.loads(self._read(connection, size))
            self.requests.append(request)
            self.behaviour(connection, request)

    def _read(self, connection: socket.socket, size: int) -> bytes:
        told = b""
        while len(told) < size:
            piece = connection.recv(size - len(told))
            if not piece:
                raise ConnectionResetError
            told += piece
        return told

    def close(self) -> None:
        self.closing.set()
        for one in (self._listening, *self._open):
            with contextlib.suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
            one.close()
        for thread in self._threads:
            thread.join(PATIENCE_S)
            assert not thread.is_alive()


@contextlib.contextmanager
def answering(
    behaviour: Behaviour, address: str = "", *, accepts: bool = True, backlog: int = 128
) -> Iterator[Answering]:
    """Until the end of the block; without an address under an abstract name that nobody has."""
    server = Answering(address or f"@workbench-test-{secrets.token_hex(8)}", behaviour, backlog)
    try:
        if accepts:
            server.start()
        yield server
    finally:
        server.close()
