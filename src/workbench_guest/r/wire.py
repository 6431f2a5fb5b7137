"""The kernel's side of the Jupyter protocol: signed messages over five sockets of a stock connection file.

What is published goes through one thread, which drops nothing and waits for a slow reader.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import zmq

_DELIMITER = b"<IDS|MSG>"
_VERSION = "5.4"
_INSIDE = "inproc://published"
_END = "inproc://end"
# Of messages that wait between a cell and its readers; a cell that prints faster than that waits.
_MOST_WAITING = 200
_LEAVE_MS = 2000
_MOMENT_S = 0.1


@dataclass(frozen=True)
class Message:
    """One that came in."""

    identities: list[bytes]
    header: dict[str, Any]
    content: dict[str, Any]

    @property
    def kind(self) -> str:
        """Such as `execute_request`."""
        return str(self.header.get("msg_type", ""))


class Wire:
    """The sockets of one kernel."""

    def __init__(self, connection: dict[str, Any]) -> None:
        self._key = str(connection["key"]).encode()
        self._session = os.urandom(8).hex()
        self._count = 0
        self._context = zmq.Context()
        self._lock = threading.Lock()
        self.shell = self._bound(connection, "shell", zmq.ROUTER)
        self.control = self._bound(connection, "control", zmq.ROUTER)
        self._stdin = self._bound(connection, "stdin", zmq.ROUTER)
        self._heart = self._bound(connection, "hb", zmq.ROUTER)
        self._published = self._bound(connection, "iopub", zmq.XPUB, {zmq.XPUB_NODROP: 1, zmq.XPUB_VERBOSE: 1})
        inner = self._inside(zmq.PULL, _INSIDE)
        self._out = self._inside(zmq.PUSH)
        self._out.connect(_INSIDE)
        self._end = self._inside(zmq.PULL, _END)
        self._publisher = threading.Thread(target=self._publish, args=(inner,), name="published", daemon=True)
        without_interrupts(self._publisher.start)
        without_interrupts(threading.Thread(target=self._beat, name="heartbeat", daemon=True).start)

    def _bound(
        self, connection: dict[str, Any], name: str, kind: int, options: dict[int, int] | None = None
    ) -> zmq.Socket[bytes]:
        made: zmq.Socket[bytes] = self._context.socket(kind)
        made.linger = _LEAVE_MS
        for option, value in (options or {}).items():
            made.setsockopt(option, value)
        port = connection[f"{name}_port"]
        separator = "-" if connection["transport"] == "ipc" else ":"
        made.bind(f"{connection['transport']}://{connection['ip']}{separator}{port}")
        return made

    def _inside(self, kind: int, name: str = "") -> zmq.Socket[bytes]:
        made: zmq.Socket[bytes] = self._context.socket(kind)
        made.set_hwm(_MOST_WAITING)
        made.linger = 0
        if name:
            made.bind(name)
        return made

    def wait(self) -> bool:
        """For a request on `shell`: False if somebody wants the end instead."""
        poller = zmq.Poller()
        for one in (self.shell, self._end):
            poller.register(one, zmq.POLLIN)
        return self._end not in dict(poller.poll())

    def end(self) -> None:
        """Have `wait` come back, from another thread."""
        with self._context.socket(zmq.PUSH) as telling:
            telling.connect(_END)
            telling.send(b"")

    def _beat(self) -> None:
        try:
            zmq.proxy(self._heart, self._heart)
        except zmq.ZMQError:
            self._heart.close(0)

    def _publish(self, inner: zmq.Socket[bytes]) -> None:
        poller = zmq.Poller()
        for one in (inner, self._published):
            poller.register(one, zmq.POLLIN)
        while True:
            ready = dict(poller.poll())
            if self._published in ready and self._published.recv()[:1] == b"\1":
                # Whoever has come knows now that nothing will be missed.
                topic = {"subscription": ""}
                self._published.send_multipart([b"iopub_welcome", *self._frames("iopub_welcome", topic, {}, {})])
            if inner in ready:
                frames = inner.recv_multipart()
                if len(frames) == 1:
                    inner.close(0)
                    self._published.close(_LEAVE_MS)
                    return
                self._published.send_multipart(frames)

    def publish(self, kind: str, content: dict[str, Any], parent: dict[str, Any]) -> None:
        """To all who listen, in the order of the calls; from any thread."""
        frames = [kind.encode(), *self._frames(kind, content, parent, {})]
        with self._lock:
            self._out.send_multipart(frames)

    def reply(
        self,
        socket: zmq.Socket[bytes],
        to: Message,
        content: dict[str, Any],
        metadata: dict[str, Any] | None = None,
    ) -> None:
        """The answer to a request."""
        kind = to.kind.removesuffix("_request") + "_reply"
        socket.send_multipart([*to.identities, *self._frames(kind, content, to.header, metadata or {})])

    def receive(self, socket: zmq.Socket[bytes], *, wait: bool = True) -> Message | None:
        """The next message; None if it is not signed as it should be, or if there is none and nobody waits."""
        try:
            frames = socket.recv_multipart(0 if wait else zmq.NOBLOCK)
            start = frames.index(_DELIMITER)
            signature, *parts = frames[start + 1 : start + 6]
            # BARRIER: any process that reaches the socket could give orders; held by
            # tests/runtimes/r/test_ends.py.
            if self._key and not hmac.compare_digest(self._signed(parts), signature):
                return None
            header, _, _, content = (json.loads(part) for part in parts)
        except (zmq.Again, ValueError):
            return None
        return Message(frames[:start], header, content)

    def _signed(self, parts: list[bytes]) -> bytes:
        digest = hmac.new(self._key, digestmod=hashlib.sha256)
        for part in parts:
            digest.update(part)
        return digest.hexdigest().encode()

    def _frames(
        self, kind: str, content: dict[str, Any], parent: dict[str, Any], metadata: dict[str, Any]
    ) -> list[bytes]:
        self._count += 1
        header = {
            "msg_id": f"{self._session}_{os.getpid()}_{self._count}_{threading.get_ident()}",
            "msg_type": kind,
            "username": "kernel",
            "session": self._session,
            "date": datetime.now(UTC).isoformat(),
            "version": _VERSION,
        }
        parts = [json.dumps(part).encode() for part in (header, parent, metadata, content)]
        return [_DELIMITER, self._signed(parts) if self._key else b"", *parts]

    def close(self) -> None:
        """By who reads `shell`: after what was said has left, and no longer than a moment after."""
        self._end_publishing()
        for one in (self.shell, self._stdin, self._out, self._end):
            one.close(_LEAVE_MS)
        # Whoever reads the others is woken, and closes them.
        self._context.term()

    def _end_publishing(self) -> None:
        with self._lock:
            self._out.send_multipart([b""])
        self._publisher.join(_LEAVE_MS / 1000)

    def leave_a_cell(self) -> None:
        """By another thread, while R does not listen: what was said is given a moment."""
        self._end_publishing()
        threading.Event().wait(_MOMENT_S)


def without_interrupts(do: Callable[[], None]) -> None:
    """Start a thread that SIGINT passes by: a system call of the main one would go on, and the cell with it."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        do()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
