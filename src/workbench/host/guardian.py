"""The guardian: waits for its host to die, and if it died without saying so, sweeps up behind it.

A process of its own, because control groups and folders cannot remove themselves when the host is killed with -9.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from workbench.data_folder import DataFolder
from workbench.host.sweep import sweep
from workbench.model.ids import HostId

_FAREWELL = b"."
# The lock is free once the kernel has closed the dead host's descriptors.
_LOCK_TIMEOUT_S, _PAUSE_S = 10.0, 0.02
_GOODBYE_TIMEOUT_S = 2.0


class Guardian:
    """The host's handle on its guardian."""

    def __init__(self, data: DataFolder, host: HostId) -> None:
        """Start it."""
        watched, self._ours = os.pipe2(os.O_CLOEXEC)
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-c", _boot(), str(watched), str(data.path), host],
                pass_fds=(watched,), env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}, cwd="/",
                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        finally:
            os.close(watched)

    @property
    def pid(self) -> int:
        """On this machine."""
        return self._process.pid

    def dismiss(self) -> None:
        """The host leaves in good order: nothing to do."""
        # A guardian that was killed hears nothing; the next host's sweep stands in for it.
        with contextlib.suppress(BrokenPipeError):
            os.write(self._ours, _FAREWELL)
        os.close(self._ours)
        # It has nothing left to do; if it hangs all the same, it is not for us to hang as well.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_GOODBYE_TIMEOUT_S)


def _boot() -> str:
    root = str(Path(__file__).resolve().parent.parent.parent)
    return f"import sys; sys.path.insert(0, {root!r}); from workbench.host.guardian import main; main()"


def main() -> None:
    """Entry point of the process."""
    watched, data_path, host = int(sys.argv[1]), Path(sys.argv[2]), HostId(sys.argv[3])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        # Whoever ends the host's whole group means the host; we go when our work is done.
        signal.signal(number, signal.SIG_IGN)
    if os.read(watched, 1) == _FAREWELL:
        return
    data = DataFolder(data_path)
    run = data.run_folder(host)
    deadline = time.monotonic() + _LOCK_TIMEOUT_S
    while time.monotonic() < deadline and run.path.is_dir():
        lock = run.lock()
        if lock is not None:
            sweep(data, run)
            return
        time.sleep(_PAUSE_S)
