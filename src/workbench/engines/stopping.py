"""Standing still by signals, where no control group does it: every process is stopped, and later let go on."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Callable

from workbench.engines import proc

_STILL = frozenset("TtZX")
# Deep in the system: it goes no further than the stop that waits for it.
_DEEP = "D"


class Stopper:
    """Of one sandbox. Whatever stood still before is left as it was, also when the others go on."""

    def __init__(self, pids: Callable[[], list[int]]) -> None:
        """`pids` lists all inside, whoever is to be stopped last at the end."""
        self._pids = pids
        self._stopped: dict[int, int] = {}
        """pid: when it began, as the number may mean another process later"""

    def stop(self) -> bool:
        """Stop all that run; True once a look finds none, so it is called again until then.

        What is stopped cannot fork, and a fork that was under way is found by the next look.
        """
        all_still = True
        for pid in self._pids():
            seen = proc.look(pid)
            signalled = self._stopped.get(pid) == seen.began
            if seen.began is None or seen.states <= (_STILL | {_DEEP} if signalled else _STILL):
                continue
            all_still = False
            self._stopped[pid] = seen.began
            _send(pid, seen.began, signal.SIGSTOP)
        return all_still

    def go_on(self) -> None:
        """All that `stop` stopped, the last one first. May be called twice."""
        while self._stopped:
            _send(*self._stopped.popitem(), signal.SIGCONT)


def _send(pid: int, began: int, number: int) -> None:
    with contextlib.suppress(OSError):
        pidfd = os.pidfd_open(pid)
        try:
            if proc.start_time(pid) == began:
                signal.pidfd_send_signal(pidfd, number)
        finally:
            os.close(pidfd)
