"""Run attacks of the proof, each in a process of its own, so that a crash, a kill or a hang is a result like any other.

Takes a JSON list of {"name", "given"} and writes one JSON line an attack. Whether one got through, the host decides.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import signal
import sys
import time
from collections.abc import Sequence
from typing import Any

from workbench_guest import afterfork
from workbench_guest.attacks.registry import Attack, Given, Measured, Refused, all_attacks
from workbench_guest.confine import syscalls as sys_

# In an attack's process: where it reports to. The row on leftover descriptors must not take it for one.
report_descriptor = -1
_DETAIL_CHARACTERS = 20_000


def main(payload: bytes, _passed: Sequence[int]) -> int:
    """Every order in turn; 0 also when attacks got through."""
    afterfork.refresh()
    attacks = all_attacks()
    for order in json.loads(payload):
        attack = attacks[order["name"]]
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in order["given"].items()}
        line = {"name": attack.name, **_run_apart(attack, Given(**fields))}
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()
    return 0


def _run_apart(attack: Attack, given: Given) -> dict[str, object]:
    read, write = os.pipe2(os.O_CLOEXEC)
    pid = os.fork()
    if pid == 0:
        os.close(read)
        _attack(attack, given, write)
    os.close(write)
    try:
        told, in_time = _read_until(read, time.monotonic() + attack.time_limit_s)
    finally:
        os.close(read)
        # It leads its own session, so whatever it started goes with it.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
        _, status = os.waitpid(pid, 0)
    if told:
        result: dict[str, object] = json.loads(told)
        return result
    if not in_time:
        return {"end": "hung", "detail": f"no answer in {attack.time_limit_s:.0f} s"}
    number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    if number == signal.SIGSYS:
        return {"end": "refused", "detail": "ended by the system-call filter"}
    return {"end": "broken", "detail": f"ended by signal {number}" if number else "ended without a word"}


def _read_until(descriptor: int, deadline: float) -> tuple[bytes, bool]:
    """Everything up to the end of file or the deadline; and whether the end came before the deadline."""
    told = b""
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            return told, False
        piece = os.read(descriptor, 1 << 16)
        if not piece:
            return told, True
        told += piece


def _attack(attack: Attack, given: Given, report: int) -> None:
    """In the child. Never returns."""
    global report_descriptor
    report_descriptor = report
    try:
        os.setsid()
        # If a limit ends the runner, what it started ends too.
        sys_.prctl(sys_.PR_SET_PDEATHSIG, signal.SIGKILL)
        result = _outcome(attack, given)
        result["detail"] = str(result["detail"])[:_DETAIL_CHARACTERS]
        os.write(report, json.dumps(result).encode())
    finally:
        os._exit(0)


def _outcome(attack: Attack, given: Given) -> dict[str, object]:
    try:
        got = attack.run(given)
    except Refused as refusal:
        return {"end": "refused", "detail": str(refusal)}
    except OSError as problem:
        return {"end": "refused", "detail": f"{type(problem).__name__}: {problem.strerror or problem}"}
    except MemoryError:
        return {"end": "refused", "detail": "MemoryError"}
    except Exception as problem:  # noqa: BLE001  a fault of the attack's own is neither a success nor a refusal
        return {"end": "broken", "detail": f"{type(problem).__name__}: {problem}"}
    if isinstance(got, Measured):
        return {"end": "got", **dataclasses.asdict(got)}
    return {"end": "got", "detail": got}
