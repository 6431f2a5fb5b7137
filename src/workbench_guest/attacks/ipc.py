"""System V and POSIX objects of the host's. The host makes its baits with the same functions."""

from __future__ import annotations

import ctypes
import os

from workbench_guest.attacks.registry import Given, Judge, Outside, Refused, attack

_libc = ctypes.CDLL(None, use_errno=True)
_libc.shmat.restype = ctypes.c_void_p
_CREATE, _REMOVE = 0o1000, 0
_FOR_ALL = 0o666
_SIZE = 4096
_HOST = (Outside.PLAIN,)


def _checked(result: int, what: str) -> int:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{what}: {os.strerror(code)}")
    return result


class Objects:
    """One of each kind, made by the host with `content` where it can hold any; `remove` may be called twice."""

    def __init__(self, key: int, queue: str, content: bytes) -> None:
        self._queue = queue
        self._segment = _checked(_libc.shmget(key, _SIZE, _CREATE | _FOR_ALL), "shmget")
        self._messages = _checked(_libc.msgget(key, _CREATE | _FOR_ALL), "msgget")
        self._semaphores = _checked(_libc.semget(key, 1, _CREATE | _FOR_ALL), "semget")
        address = _libc.shmat(self._segment, None, 0)
        ctypes.memmove(address, content, len(content))
        _libc.shmdt(ctypes.c_void_p(address))
        self._made_queue = _libc.mq_open(queue.encode(), os.O_CREAT | os.O_RDWR, _FOR_ALL, None)

    def remove(self) -> None:
        """All of them."""
        _libc.shmctl(self._segment, _REMOVE, None)
        _libc.msgctl(self._messages, _REMOVE, None)
        _libc.semctl(self._semaphores, 0, _REMOVE)
        if self._made_queue >= 0:
            os.close(self._made_queue)
            self._made_queue = -1
            _libc.mq_unlink(self._queue.encode())


@attack("ipc-shared-memory", "attach the host's System V memory", judge=Judge.CANARY, outside=_HOST)
def shared_memory(given: Given) -> str:
    """By its key."""
    segment = _checked(_libc.shmget(given.ipc_key, 0, 0), "shmget")
    address = _libc.shmat(segment, None, 0o10000)
    if address in (None, ctypes.c_void_p(-1).value):
        raise Refused("not attached")
    return ctypes.string_at(address, 100).decode(errors="replace")


@attack("ipc-messages", "open the host's System V message queue", outside=_HOST)
def messages(given: Given) -> str:
    """By its key."""
    return f"queue {_checked(_libc.msgget(given.ipc_key, 0), 'msgget')}"


@attack("ipc-semaphores", "open the host's System V semaphores", outside=_HOST)
def semaphores(given: Given) -> str:
    """By their key."""
    return f"set {_checked(_libc.semget(given.ipc_key, 0, 0), 'semget')}"


@attack("ipc-posix-queue", "open the host's POSIX message queue", outside=_HOST)
def posix_queue(given: Given) -> str:
    """By its name."""
    descriptor = _checked(_libc.mq_open(given.queue.encode(), os.O_RDONLY), "mq_open")
    os.close(descriptor)
    return "open"


@attack("ipc-posix-memory", "open the host's POSIX shared memory", judge=Judge.CANARY, outside=_HOST)
def posix_memory(given: Given) -> str:
    """By its name in /dev/shm."""
    with open(f"/dev/shm/{given.shm_name}", encoding="utf-8") as file:
        return file.read(4096)
