"""What building and bringing have in common: programs that are run within bounds, one of us at a time, files that every
sandbox can read.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from workbench.errors import SandboxUnavailable

# A slow mirror and a small machine; a stuck download must still end.
INSTALL_TIMEOUT_S = 1800
_LOOK_S, _STOP_S = 0.2, 10.0
_MOST_SAID = 2000


def pip(python: Path | str, verb: str, *words: str) -> list[str]:
    """What to run for it, with what the machine's pip is configured with."""
    return [
        str(python),
        "-m",
        "pip",
        verb,
        "--no-input",
        "--disable-pip-version-check",
        "--only-binary",
        ":all:",
        *words,
    ]


def run(
    command: list[str],
    *,
    env: dict[str, str] | None = None,
    meanwhile: Callable[[], None] = lambda: None,
    timeout_s: float = INSTALL_TIMEOUT_S,
) -> str:
    """To its end, with everything that it started; what it said. `meanwhile` is called several times a second.

    Raises:
        SandboxUnavailable: it failed, the message has its last words; or it took too long.
    """
    name = " ".join(command[:4])
    with tempfile.TemporaryFile() as said:
        # A group of its own, so that what it started ends with it.
        process = subprocess.Popen(
            command, env=env, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
        )
        deadline = time.monotonic() + timeout_s
        try:
            while (code := _ended(process)) is None:
                meanwhile()
                if time.monotonic() > deadline:
                    raise SandboxUnavailable(f"{name} took over {timeout_s:.0f} s")
        finally:
            _end(process)
        words = _text(said)
    if code:
        raise SandboxUnavailable(f"{name} failed:\n{words[-_MOST_SAID:]}")
    return words


def _ended(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(_LOOK_S)
    except subprocess.TimeoutExpired:
        return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """The whole group: ask, wait, kill. Nothing happens to one that has ended."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        if process.poll() is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_S)


def _text(said: IO[bytes]) -> str:
    said.seek(0)
    return said.read().decode(errors="replace")


@contextmanager
def only_one(lock: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Two at once: the second waits, says so, and finds what the first has made."""
    with lock.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def open_to_everyone(folder: Path) -> None:
    """Sandboxes have a uid of their own: a strict umask of whoever built the image must not lock them out."""
    for parent, folders, names in os.walk(folder):
        for name in (".", *folders, *names):
            path = os.path.join(parent, name)
            if not os.path.islink(path):
                mode = os.stat(path).st_mode
                os.chmod(path, mode | 0o444 | (0o111 if mode & 0o100 else 0))
