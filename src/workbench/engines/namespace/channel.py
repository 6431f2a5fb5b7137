"""The host's end of a zygote's or a sandbox's socket: one message and its descriptors at a time, never blocking."""

from __future__ import annotations

import asyncio
import os
import socket

from workbench_guest.channel import MAX_DESCRIPTORS, MAX_MESSAGE
from workbench_guest.messages import Message, decode, encode

# A reader that is alive takes a message in milliseconds; one that a guest stopped never does.
SEND_TIMEOUT_S = 20.0


class ChannelClosed(Exception):
    """The other side is gone, or said something that is not a message: both mean that it cannot be trusted on."""


class MessageTooLong(ValueError):
    """More than the other side takes in one piece; nothing was sent."""


class HostChannel:
    """Owns its socket; closed by whoever made it."""

    def __init__(self, sock: socket.socket) -> None:
        sock.setblocking(False)
        self._sock = sock
        self._sending = asyncio.Lock()

    @staticmethod
    def pair() -> tuple[HostChannel, socket.socket]:
        """Our end, and the one to give away."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        return HostChannel(ours), theirs

    async def send(self, message: Message, descriptors: tuple[int, ...] = ()) -> None:
        """Send; the descriptors stay the caller's.

        Raises:
            ChannelClosed: nobody is there, or nobody takes it in SEND_TIMEOUT_S.
            MessageTooLong: nothing was sent.
        """
        data = encode(message)
        if len(data) > MAX_MESSAGE:
            raise MessageTooLong(f"{len(data)} bytes when written as JSON, of {MAX_MESSAGE}")
        try:
            async with asyncio.timeout(SEND_TIMEOUT_S):
                await self._send(data, descriptors)
        except TimeoutError as problem:
            raise ChannelClosed(f"not taken in {SEND_TIMEOUT_S:.0f} s") from problem

    async def _send(self, data: bytes, descriptors: tuple[int, ...]) -> None:
        # One at a time: the loop knows one writer a descriptor, and the first of two that wait would never wake.
        async with self._sending:
            while True:
                try:
                    socket.send_fds(self._sock, [data], list(descriptors))
                    return
                except BlockingIOError:
                    await self._ready(write=True)
                except OSError as problem:
                    raise ChannelClosed(str(problem)) from problem

    async def receive(self) -> tuple[Message, list[int]]:
        """The next message; its descriptors are the caller's to close.

        Raises:
            ChannelClosed: there will be none.
        """
        while True:
            try:
                data, descriptors, _, _ = socket.recv_fds(
                    self._sock, MAX_MESSAGE, MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC
                )
            except BlockingIOError:
                await self._ready(write=False)
                continue
            except OSError as problem:
                raise ChannelClosed(str(problem)) from problem
            try:
                if not data:
                    raise ChannelClosed("closed by the other side")
                return decode(data), descriptors
            except (ChannelClosed, ValueError) as problem:
                for descriptor in descriptors:
                    os.close(descriptor)
                raise ChannelClosed(str(problem)) from problem

    @property
    def has_said(self) -> bool:
        """Whether something has come that nobody has received, or nothing will come any more."""
        try:
            self._sock.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except OSError:
            return True
        return True

    async def _ready(self, *, write: bool) -> None:
        loop = asyncio.get_running_loop()
        ready: asyncio.Future[None] = loop.create_future()
        add, remove = (loop.add_writer, loop.remove_writer) if write else (loop.add_reader, loop.remove_reader)
        descriptor = self._sock.fileno()
        if descriptor < 0:
            raise ChannelClosed("closed on our side")
        add(descriptor, lambda: None if ready.done() else ready.set_result(None))
        try:
            await ready
        finally:
            remove(descriptor)

    def close(self) -> None:
        """May be called twice. Nobody may be waiting on it."""
        self._sock.close()
