"""The processes of one sandbox, found and killed from outside."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

from bench.sessions import outside_pid
from bench.soak.leaks import content_of, descendants, is_alive, threads_of

_OUR_NAME = "workbench"


class Processes:
    """Of the sandbox with this pid namespace."""

    def __init__(self, namespace: int) -> None:
        first = outside_pid(1, namespace)
        if first is None:
            raise ProcessLookupError
        self.first = first
        """pid 1 of the sandbox"""

    def kernel(self, inside: int) -> int | None:
        """The process that has this number inside."""
        return next((pid for pid in self._all() if _inside(pid) == inside), None)

    def dormant(self) -> list[int]:
        """Snapshots, and interpreters that have not become anything yet."""
        return [pid for pid in self._all() if _status(pid, "Name:") == _OUR_NAME and self._is_child(pid)]

    def any(self) -> list[int]:
        """All of them, but for pid 1."""
        return self._all()

    def kill(self, pid: int) -> bool:
        """Whether it was there. Never another one that has got the number meanwhile."""
        return _kill(pid, lambda: pid == self.first or pid in self._all())

    def count(self) -> int:
        """Without pid 1."""
        return len(self._all())

    def told(self) -> str:
        """For a report: what each of them is, and what it waits for."""
        return "; ".join(_told(pid) for pid in [self.first, *self._all()])

    def _all(self) -> list[int]:
        return [pid for pid in descendants(self.first) if is_alive(pid)]

    def _is_child(self, pid: int) -> bool:
        return _status(pid, "PPid:") == str(self.first)


def kill_zygotes(host: int) -> int:
    """Of the host with this pid; how many there were."""
    return sum(_kill(pid, lambda pid=pid: pid in _zygotes(host)) for pid in _zygotes(host))  # type: ignore[misc]


def _zygotes(host: int) -> list[int]:
    """Their clones are called the same, but live in pid namespaces of their own."""
    found = [pid for pid in descendants(host) if b"workbench_guest.zygote" in content_of(f"/proc/{pid}/cmdline")]
    return [pid for pid in found if _status(pid, "NSpid:") == str(pid)]


def _kill(pid: int, is_still_it: Callable[[], bool]) -> bool:
    """Asked once the process cannot become another one under the same number."""
    try:
        handle = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if not is_still_it():
            return False
        signal.pidfd_send_signal(handle, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(handle)
    return True


def _told(pid: int) -> str:
    name, state, inside, parent = (_status(pid, field) for field in ("Name:", "State:", "NSpid:", "PPid:"))
    threads = [f"{content_of(f'/proc/{pid}/task/{one}/wchan').decode()}" for one in threads_of(pid)]
    return f"{inside} {name} {state} of {parent}, its threads in {threads}"


def _status(pid: int, field: str) -> str:
    """The last word of a line."""
    lines = content_of(f"/proc/{pid}/status").decode().splitlines()
    return next((line.split()[-1] for line in lines if line.startswith(field)), "")


def _inside(pid: int) -> int:
    return int(_status(pid, "NSpid:") or 0)
