"""The program itself: what the host wants of it, its start and its end."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import workbench_guest
from workbench_guest.confine import syscalls as sys_
from workbench_guest.keeper.place import Place

_TERM_S = 2.0
BEGIN_VARIABLE = "WORKBENCH_BEGIN"
"""by which a program that is started ahead knows where it will find its session's variables and folder"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """What the host wants."""

    key: str
    working_folder: str
    kernel: str
    name: str
    argv: Sequence[str]
    read_at_start: tuple[str, ...]
    """beginnings of names of variables that it cannot be told later"""


def order_of(told: Mapping[str, object]) -> Order:
    """From what the host sends."""
    argv, read_at_start = told["argv"], told["read_at_start"]
    assert isinstance(argv, list)
    assert isinstance(read_at_start, list)
    words = {name: str(told[name]) for name in ("key", "working_folder", "kernel", "name")}
    return Order(argv=[str(one) for one in argv], read_at_start=tuple(map(str, read_at_start)), **words)


def start_program(
    order: Order, place: Place, printed: Sequence[int], session: int | None = None
) -> subprocess.Popen[bytes]:
    """In our own process group. `session` is where it will be told what it is started without."""
    path = place.write_file(order.key, order.name)
    guest = os.path.dirname(next(iter(workbench_guest.__path__)))
    # Not by the session's PATH, which may lead to another interpreter or to none.
    meant = {"{connection_file}": path, "{guest}": guest, "{python}": sys.executable}
    argv = [_filled_in(part, meant) for part in order.argv]
    out, err = printed
    mine = os.getpid()
    try:
        return subprocess.Popen(
            argv,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=err,
            env=None if session is None else {**os.environ, BEGIN_VARIABLE: str(session)},
            pass_fds=() if session is None else (session,),
            # There is one thread here, and whoever ends us must not leave the program behind.
            preexec_fn=lambda: _end_with(mine),
        )
    except OSError as problem:
        sys.exit(f"{argv[0]} cannot be started: {problem.strerror or problem}")


def _filled_in(part: str, meant: Mapping[str, str]) -> str:
    for name, value in meant.items():
        part = part.replace(name, value)
    return part


def end_program(program: subprocess.Popen[bytes]) -> None:
    """It has ended by itself, or is asked to, and made to."""
    if program.poll() is None:
        program.terminate()
        try:
            program.wait(_TERM_S)
        except subprocess.TimeoutExpired:
            program.kill()
            program.wait()


def _end_with(parent: int) -> None:
    """In the program, before it is one."""
    sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(1)
