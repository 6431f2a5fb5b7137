"""A server of a program's own: started as a child, and ended with the program however that ends."""

from __future__ import annotations

import atexit
import collections
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from pathlib import Path
from typing import IO

from workbench.errors import ServerUnavailable

# The first time of all an image is built, which downloads; later its libraries are imported, once from a cold disk.
_START_TIMEOUT_S = 1800.0
# It ends its host, and that its sandboxes.
_END_TIMEOUT_S = 60.0
_KILL_TIMEOUT_S = 10.0
_TOLD_LINES = 20
_LONGEST_GREETING = 64 * 1024
# As Ctrl-D at a terminal: the end of the pipe does not come while a forked child of this program holds it too.
_GOODBYE = b"\x04"
# A process that was killed is to be asked about a moment after its connections are gone.
_DYING_S = 0.1
_PAUSE_S = 0.1
# -P: what lies in the program's folder is not taken for ours.
_COMMAND = (sys.executable, "-P", "-m", "workbench")


class LocalServer:
    """One child. Whoever started it closes it; the end of this program closes it too.

    The child reads a pipe that this program holds, and watches this program's end, whatever forked children of it
    live on. Then it ends everything that it started. So nothing depends on this program's last words. If the child
    is killed, its host ends by itself, and `close` removes what is left.
    """

    def __init__(self, child: subprocess.Popen[bytes], temporary: Path | None) -> None:
        self._child = child
        self._temporary = temporary
        self._program = os.getpid()
        self._closing = threading.Lock()
        self._last_words: collections.deque[str] = collections.deque(maxlen=_TOLD_LINES)
        assert child.stderr is not None
        # Read all the time: a child that cannot write its log would stand still.
        self._reader = threading.Thread(target=self._read_log, args=(child.stderr,), name="workbench-log", daemon=True)
        self.url = ""
        self.key = ""

    @classmethod
    def start(cls, data_dir: str | Path | None = None) -> LocalServer:
        """Start one and wait until it answers.

        Raises:
            ServerUnavailable: it could not be started; the message has what it said.
        """
        # Made here, so that it is known whatever becomes of the child.
        temporary = Path(tempfile.mkdtemp(prefix="wb-")).absolute() if data_dir is None else None
        place = temporary or Path(str(data_dir)).absolute()
        try:
            child = _started(["--data-dir", str(place), *(["--temporary"] if temporary else [])])
        except BaseException:
            if temporary is not None:
                temporary.rmdir()
            raise
        server = cls(child, temporary)
        atexit.register(server.close)
        try:
            server._reader.start()
            server._greet()
        except BaseException:
            server.close()
            raise
        return server

    def close(self) -> None:
        """End it and everything that it started. May be called twice."""
        atexit.unregister(self.close)
        if os.getpid() != self._program:
            # In a forked child of the program, whose server this is not.
            return
        with self._closing:
            child = self._child
            if child.stdin is None or child.stdin.closed:
                return
            with contextlib.suppress(BrokenPipeError):
                os.write(child.stdin.fileno(), _GOODBYE)
            with contextlib.suppress(BrokenPipeError):
                child.stdin.close()
            for ask, wait_s in ((None, _END_TIMEOUT_S), (signal.SIGTERM, _KILL_TIMEOUT_S), (signal.SIGKILL, None)):
                if ask is not None:
                    child.send_signal(ask)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(wait_s)
                    break
            if self._reader.ident is not None:
                self._reader.join(_KILL_TIMEOUT_S)
            for pipe in (child.stdout, child.stderr):
                if pipe is not None:
                    pipe.close()
            self._remove_what_is_left()

    def lost(self) -> str:
        """How it ended if it did, and what to do; empty while it runs. Waits for no more than a moment."""
        if os.getpid() != self._program:
            return ""
        try:
            code = self._child.wait(_DYING_S)
        except subprocess.TimeoutExpired:
            return ""
        how = f"killed by signal {-code}" if code < 0 else f"with exit code {code}"
        return f"the local server has ended ({how}); close this client, and start another with Workbench.local()"

    def _remove_what_is_left(self) -> None:
        """Only if it was killed: it does so itself. By a command, as that takes more than a client knows."""
        folder, deadline = self._temporary, time.monotonic() + _END_TIMEOUT_S
        while folder is not None and folder.exists():
            left_s = deadline - time.monotonic()
            if left_s <= 0:
                warnings.warn(f"{folder}, of a server that was killed, could not be removed", stacklevel=3)
                return
            environ = {**os.environ, "WORKBENCH_DATA_DIR": str(folder)}
            with contextlib.suppress(subprocess.TimeoutExpired):
                done = subprocess.run(
                    [*_COMMAND, "host", "stop", "--and-remove"],
                    env=environ,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    timeout=left_s,
                    check=False,
                )
                if done.returncode != 0:
                    # Its host may be removing it at the same time.
                    time.sleep(_PAUSE_S)

    def _greet(self) -> None:
        line = self._first_line()
        try:
            told = json.loads(line)
            self.url, self.key = str(told["url"]), str(told["key"])
        except (ValueError, TypeError, KeyError):
            raise self._not_started(line) from None

    def _first_line(self) -> bytes:
        assert self._child.stdout is not None
        source = self._child.stdout.fileno()
        deadline = time.monotonic() + _START_TIMEOUT_S
        said = b""
        while b"\n" not in said and len(said) < _LONGEST_GREETING:
            # Not select(), which takes no descriptor above 1023, and programs that bring us along may have many.
            ready = select.poll()
            ready.register(source, select.POLLIN)
            if not ready.poll(max(0.0, deadline - time.monotonic()) * 1000):
                raise ServerUnavailable(
                    f"the server did not start within {_START_TIMEOUT_S:g} s; try `workbench serve`", self._log()
                )
            piece = os.read(source, 4096)
            if not piece:
                break
            said += piece
        return said.partition(b"\n")[0]

    def _not_started(self, said: bytes) -> ServerUnavailable:
        if not said:
            # It is leaving, and what it says last is what matters.
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._child.wait(_KILL_TIMEOUT_S)
                self._reader.join(_KILL_TIMEOUT_S)
        words = [line for line in self._last_words if line] or [f"it said {said[:200]!r}; try `workbench serve`"]
        last = words[-1].removeprefix("error: ")
        return ServerUnavailable(f"the server could not be started: {last}", self._log())

    def _log(self) -> dict[str, str]:
        return {"log": "\n".join(self._last_words)}

    def _read_log(self, source: IO[bytes]) -> None:
        for line in source:
            self._last_words.append(line.decode("utf-8", "replace").strip())


def _started(options: list[str]) -> subprocess.Popen[bytes]:
    # A descriptor of this very process: a number could be another's by the time that the child looks.
    us = os.pidfd_open(os.getpid())
    try:
        return subprocess.Popen(
            [*_COMMAND, "serve", "--embedded", "--end-with", str(us), *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(us,),
            # Ctrl-C is for the program, which then says goodbye.
            start_new_session=True,
        )
    finally:
        os.close(us)
