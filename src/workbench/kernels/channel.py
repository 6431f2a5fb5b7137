"""One zmq socket on an event loop: messages as they come, in batches, paused when nobody keeps up."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import zmq

# Others get their turn after so many messages.
_BATCH = 64


class ZmqChannel:
    """Owns its socket. `on_message` is called with the frames of each message, on the loop."""

    def __init__(self, socket: zmq.Socket[bytes], on_message: Callable[[list[bytes]], None]) -> None:
        self._socket = socket
        self._on_message = on_message
        self._loop = asyncio.get_running_loop()
        self._descriptor = int(socket.getsockopt(zmq.FD))
        self._waking = False
        self._paused_by: set[str] = set()
        self._loop.add_reader(self._descriptor, self._wake)
        self._wake_soon()

    def send(self, frames: list[bytes]) -> bool:
        """Hand it over; False if the other side takes nothing any more and the queue is full."""
        try:
            self._socket.send_multipart(frames, zmq.NOBLOCK)
        except zmq.ZMQError:
            return False
        finally:
            # Sending may use up the descriptor's one notice of what has come in meanwhile.
            self._wake_soon()
        return True

    def pause(self, who: str) -> None:
        """Take nothing more in; the sender will wait."""
        self._paused_by.add(who)

    def resume(self, *who: str) -> None:
        """Go on, unless another wants it paused."""
        if self._paused_by.intersection(who):
            self._paused_by.difference_update(who)
            self._wake_soon()

    def look(self) -> bool:
        """Take in what is there now; whether that was anything, or may not be taken."""
        return self._wake() > 0 or bool(self._paused_by)

    def _wake_soon(self) -> None:
        if not self._waking:
            self._waking = True
            self._loop.call_soon(self._wake)

    def _wake(self) -> int:
        """How many messages there were."""
        self._waking = False
        for taken in range(_BATCH):
            if self._paused_by or self._socket.closed:
                return taken
            try:
                frames = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.ZMQError:
                return taken
            try:
                self._on_message(frames)
            except BaseException:
                # One message is lost, and told by the loop; those behind it are not.
                self._wake_soon()
                raise
        self._wake_soon()
        return _BATCH

    def close(self, linger_ms: int = 0) -> None:
        """May be called twice. What was sent may take that long to leave, in the background."""
        if not self._socket.closed:
            self._loop.remove_reader(self._descriptor)
            with contextlib.suppress(zmq.ZMQError):
                self._socket.close(linger=linger_ms)


def make_socket(context: zmq.Context[Any], kind: int, **options: int) -> zmq.Socket[bytes]:
    """A socket with options by their names in zmq."""
    socket: zmq.Socket[bytes] = context.socket(kind)
    for name, value in options.items():
        socket.setsockopt(getattr(zmq, name), value)
    return socket
