"""A program that is started before anybody has the sandbox, and is told whose it is when somebody does.

It must not look at its variables or its folder before its first request, and then read both from a memory file.
"""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Mapping, Sequence

from workbench_guest.entering import HELD_BACK
from workbench_guest.keeper.place import Place
from workbench_guest.keeper.program import Order, end_program, start_program
from workbench_guest.memory_file import memory_file

# What any program, its loader or its libraries may have looked at while it started: nobody can tell it otherwise later.
_READ_BY_ANY = ("LD_", "OPENSSL_", "SSL_", "MALLOC_", "GLIBC_", "ICU_", "LC_", "LANG", "TZ")
# Kernels of ours install their helpers as they start, and not all of them without tool execution.
_READ_BY_OURS = ("WORKBENCH_TOOL_EXECUTION",)


class WaitingProgram:
    """One per process, which ends with it until it is claimed."""

    def __init__(self, order: Order, printed: Sequence[int]) -> None:
        self._order = order
        self._started_with = dict(os.environ)
        self._told = memory_file("session")
        self.place = Place(order.kernel)
        # As the program is to have them; our own are set when we are its keeper.
        signal.signal(signal.SIGINT, lambda *_: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, HELD_BACK)
        self.program = start_program(order, self.place, printed, self._told)
        signal.signal(signal.SIGCHLD, self._look)
        # It may have been quicker.
        self._look()

    def _look(self, *_: object) -> None:
        if os.waitid(os.P_PID, self.program.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None:
            self.place.close()
            os._exit(1)

    def fits(self, order: Order) -> bool:
        """Whether it is what is wanted now, with the variables that we have by now."""
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        same = (order.key, order.argv, order.name) == (self._order.key, self._order.argv, self._order.name)
        return same and self._read(os.environ) == self._read(self._started_with)

    def _read(self, env: Mapping[str, str]) -> dict[str, str]:
        names = (*_READ_BY_ANY, *_READ_BY_OURS, *self._order.read_at_start)
        return {name: value for name, value in env.items() if name.startswith(names)}

    def tell(self) -> None:
        """Whose it is: our variables and our folder. Before it can be asked anything."""
        session = {"env": dict(os.environ), "cwd": os.getcwd()}
        os.pwrite(self._told, json.dumps(session).encode(), 0)
        os.close(self._told)

    def give_up(self) -> None:
        """Another one is started."""
        end_program(self.program)
        self.place.close()
        os.close(self._told)
