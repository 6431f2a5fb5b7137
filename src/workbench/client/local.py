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
import threading
import time
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


class LocalServer:
    """One child. Whoever started it closes it; the end of this program closes it too.

    The child reads a pipe that only this program holds. When it ends, by whatever means, the pipe does, and then the
    child ends everything that it started. So nothing depends on this program's last words.
    """

    def __init__(self, child: subprocess.Popen[bytes]) -> None:
        self._child = child
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
        place = ["--temporary"] if data_dir is None else ["--data-dir", str(Path(data_dir).absolute())]
        child = subprocess.Popen(
            # -P: what lies in the program's folder is not taken for ours.
            [sys.executable, "-P", "-m", "workbench", "serve", "--embedded", *place],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            # Ctrl-C is for the program, which then closes the pipe.
            start_new_session=True,
        )
        server = cls(child)
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
        with self._closing:
            child = self._child
            if child.stdin is None or child.stdin.closed:
                return
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
            ready, _, _ = select.select([source], [], [], max(0.0, deadline - time.monotonic()))
            if not ready:
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
