"""What visitors see of a kernel's output: a slow one is waited for a little, a stuck one is not.

Which visitor misses something is libzmq's affair; this only decides whether the kernel waits.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from typing import Any

import zmq

from workbench.kernels.channel import ZmqChannel, make_socket

# Messages that libzmq holds for one visitor.
_HIGH_WATER_MARK = 1000
# A notebook that draws 20,000 displays takes them within this; whoever does not misses some, for at least so long.
_PATIENCE_S, _WITHOUT_PATIENCE_S = 1.0, 30.0
_LOOK_AGAIN_S = 0.005


class Audience:
    """Owns the socket that visitors subscribe to. `hold` is told when the kernel should wait, and when it may go on."""

    def __init__(self, context: zmq.Context[Any], address: str, on_subscription: Callable[[list[bytes]], None]) -> None:
        self._socket = make_socket(context, zmq.XPUB, LINGER=0, SNDHWM=_HIGH_WATER_MARK)
        # Every visitor's subscription is told, not only the first.
        self._socket.setsockopt(zmq.XPUB_VERBOSE, 1)
        self._socket.bind(address)
        self._channel = ZmqChannel(self._socket, on_subscription)
        self._loop = asyncio.get_running_loop()
        self._held: deque[list[bytes]] = deque()
        self._since = 0.0
        self._lossy_until = 0.0
        self._lossy(False)
        self.hold: Callable[[bool], None] = lambda _: None

    def send(self, frames: list[bytes]) -> None:
        """To all that listen, in the order it was given."""
        if self._held:
            self._held.append(frames)
        elif not self._sent(frames):
            self._held.append(frames)
            self._since = time.monotonic()
            self.hold(True)
            self._loop.call_later(_LOOK_AGAIN_S, self._go_on)

    def _sent(self, frames: list[bytes]) -> bool:
        """False if somebody has no room and there is patience left."""
        if not self._lossy_until:
            return self._channel.send(frames)
        if time.monotonic() < self._lossy_until:
            return self._channel.send(frames) or True
        # Whoever was stuck and still is will not be waited for again.
        self._lossy(False)
        self._lossy_until = 0.0
        if self._channel.send(frames):
            return True
        self._lose_patience()
        return self._channel.send(frames) or True

    def _lose_patience(self) -> None:
        self._lossy(True)
        self._lossy_until = time.monotonic() + _WITHOUT_PATIENCE_S

    def _lossy(self, yes: bool) -> None:
        self._socket.setsockopt(zmq.XPUB_NODROP, 0 if yes else 1)

    def _go_on(self) -> None:
        if self._socket.closed:
            return
        # BARRIER: a visitor that never reads would stop the session; held by tests/kernel/test_attach.py.
        if not self._lossy_until and time.monotonic() > self._since + _PATIENCE_S:
            self._lose_patience()
        while self._held and self._sent(self._held[0]):
            self._held.popleft()
        if self._held:
            self._loop.call_later(_LOOK_AGAIN_S, self._go_on)
        else:
            self.hold(False)

    def close(self) -> None:
        """May be called twice."""
        self._channel.close()
