"""A copy of the kernel that keeps everything of the agent's, gives up what was its original's, and sleeps."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Iterable

from workbench_guest import entering
from workbench_guest.channel import Channel
from workbench_guest.confine import syscalls as sys_
from workbench_guest.kernel import left_behind
from workbench_guest.messages import OWN_NAME, Offer, Start

# The process between us and the kernel ends in microseconds; a busy machine may make it wait.
_ORPHANED_S, _LOOK_S = 10.0, 0.0005


def sleep(
    name: str, ends: tuple[socket.socket, socket.socket], own: Iterable[int], bury: Callable[[], object]
) -> tuple[bytes, list[int]]:
    """In the copy: until an order comes; its payload and descriptors. Does not return if none ever will.

    Args:
        name: of this snapshot, as the host chose it.
        ends: of a channel: one for pid 1, one for us.
        own: descriptors of the kernel that this is a copy of. They are closed by number: their owners lie dead in our
            memory, and must not be asked to do anything that would reach the original.
        bury: what is to be done before.
    """
    try:
        bury()
        return _sleep(name, ends, own)
    except BaseException:  # noqa: BLE001  a copy must never go on as if it were the kernel
        os._exit(1)


def _sleep(name: str, ends: tuple[socket.socket, socket.socket], own: Iterable[int]) -> tuple[bytes, list[int]]:
    theirs, ours = ends
    # The name first: who is neither in a kernel's group nor called so may be taken for what a lost cell left running.
    sys_.set_name(OWN_NAME)
    os.setsid()
    line = entering.line()
    assert line is not None
    kept = {0, 1, 2, line.fileno(), theirs.fileno(), ours.fileno()}
    for descriptor in own:
        if descriptor not in kept:
            with contextlib.suppress(OSError):
                os.close(descriptor)
    _be_silent()
    left_behind.own_offsets(kept)
    _until_orphaned()
    line.send(Offer(snapshot=name, pid=os.getpid()), (theirs.fileno(),))
    theirs.close()
    line.close()
    # Taken from its owner, who closes both ends.
    channel = Channel(socket.socket(fileno=ours.detach()))
    received = channel.receive()
    if received is None or not isinstance(received[0], Start):
        os._exit(0)
    sys_.set_name("python3")
    if received[0].line:
        entering.set_line(channel)
    else:
        channel.close()
    payload = entering.take_over(received[1])
    signal.pthread_sigmask(signal.SIG_UNBLOCK, entering.HELD_BACK)
    return payload, received[1][4:]


def _be_silent() -> None:
    nowhere = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    os.close(nowhere)


def _until_orphaned() -> None:
    """Pid 1 takes only its own children in."""
    deadline = time.monotonic() + _ORPHANED_S
    while os.getppid() != 1:
        if time.monotonic() > deadline:
            os._exit(1)
        time.sleep(_LOOK_S)
