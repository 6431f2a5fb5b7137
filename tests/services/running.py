"""A faulty server in a process of its own, for as long as a test needs it."""

from __future__ import annotations

import contextlib
import ctypes
import json
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.services.faulty_http import FORGET, SEEN, Asked

_ROOT = Path(__file__).resolve().parents[2]
_PR_SET_PDEATHSIG = 1
_ANSWER_S = 30.0
_STOP_S = 10.0


@dataclass(frozen=True)
class Running:
    """One that listens."""

    url: str

    def seen(self) -> list[Asked]:
        """Every request so far, in the order in which they came."""
        return self._told(SEEN)

    def forget(self) -> list[Asked]:
        """The same, and begin anew."""
        return self._told(FORGET)

    def _told(self, path: str) -> list[Asked]:
        with urllib.request.urlopen(f"{self.url}{path}", timeout=_ANSWER_S) as answer:
            return [Asked(**one) for one in json.load(answer)]


def _end_with_the_tests() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@contextlib.contextmanager
def running(module: str) -> Iterator[Running]:
    """`python -m module`; killed afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        cwd=_ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        preexec_fn=_end_with_the_tests,
    )
    try:
        assert process.stdout is not None
        port = process.stdout.readline().decode().strip()
        assert port.isdigit(), f"{module} did not start"
        yield Running(f"http://127.0.0.1:{port}")
    finally:
        process.kill()
        process.communicate(timeout=_STOP_S)
