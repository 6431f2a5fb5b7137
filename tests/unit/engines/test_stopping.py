"""Stopping processes by signals: all of them, only those that ran, and never a stranger."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

import pytest

from workbench.engines import proc
from workbench.engines.stopping import Stopper

BOUND_S = 20.0
Spawn = Callable[[str], "subprocess.Popen[bytes]"]
# Its first thread ends, and another goes on.
_LEADER_GONE = """
import ctypes, threading, time
threading.Thread(target=lambda: [time.sleep(0.001) for _ in iter(int, 1)]).start()
print(flush=True)
ctypes.CDLL(None).syscall({exit}, 0)
"""
_EXIT = {"x86_64": 60}.get(os.uname().machine, 93)


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Starts Python that has said something."""
    children: list[subprocess.Popen[bytes]] = []

    def start(code: str) -> subprocess.Popen[bytes]:
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        children.append(child)
        assert child.stdout is not None
        child.stdout.readline()
        return child

    yield start
    for child in children:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def eventually(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + BOUND_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)


BUSY = "print(flush=True)\nwhile True: pass"


def test_all_are_stopped_and_go_on(spawn: Spawn) -> None:
    pids = [spawn(BUSY).pid for _ in range(2)]
    stopper = Stopper(lambda: pids)
    eventually(stopper.stop)
    assert [proc.states(pid) for pid in pids] == [{"T"}, {"T"}]
    assert stopper.stop(), "it may be asked again"
    stopper.go_on()
    stopper.go_on()
    eventually(lambda: not any("T" in proc.states(pid) for pid in pids))


def test_what_stood_still_before_is_not_woken(spawn: Spawn) -> None:
    stopped, busy = spawn(BUSY).pid, spawn(BUSY).pid
    os.kill(stopped, signal.SIGSTOP)
    eventually(lambda: proc.states(stopped) == {"T"})
    stopper = Stopper(lambda: [stopped, busy])
    eventually(stopper.stop)
    stopper.go_on()
    eventually(lambda: "T" not in proc.states(busy))
    assert proc.states(stopped) == {"T"}


def test_what_comes_later_is_found_by_the_next_look(spawn: Spawn) -> None:
    pids = [spawn(BUSY).pid]
    stopper = Stopper(lambda: pids)
    eventually(stopper.stop)
    pids.append(spawn(BUSY).pid)
    assert not stopper.stop()
    eventually(stopper.stop)
    assert proc.states(pids[1]) == {"T"}


def test_a_process_whose_first_thread_is_gone_is_not_taken_for_a_dead_one(spawn: Spawn) -> None:
    child = spawn(_LEADER_GONE.format(exit=_EXIT))
    eventually(lambda: "Z" in proc.states(child.pid))
    stopper = Stopper(lambda: [child.pid])
    assert not stopper.stop()
    eventually(stopper.stop)
    assert proc.states(child.pid) == {"Z", "T"}


def test_one_that_is_gone_keeps_nobody_waiting(spawn: Spawn) -> None:
    child = spawn(BUSY)
    pid = child.pid
    stopper = Stopper(lambda: [pid])
    eventually(stopper.stop)
    child.kill()
    child.wait()
    assert stopper.stop()
    stopper.go_on()


def test_a_number_that_means_another_process_by_now_gets_no_signal(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    pid = spawn(BUSY).pid
    stopper = Stopper(lambda: [pid])
    eventually(stopper.stop)
    began = proc.start_time(pid)
    assert began is not None
    monkeypatch.setattr(proc, "start_time", lambda _: began + 1)
    stopper.go_on()
    assert proc.states(pid) == {"T"}
