"""`workbench serve` in a process of its own, which is killed and started again at the same address."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx2
from tests.host.support import eventually, host_pids, run_folders

from workbench import Workbench
from workbench.guest_trees import remove_tree
from workbench.settings import Settings

START_S, STOP_S = 60.0, 60.0
_READY = re.compile(r"is ready at (http://\S+:(\d+))")
_KEY = re.compile(r"\bkey +(wbk_\S+)")
_LAST_LINE = "Ctrl-C ends"


class Server:
    """Of one data folder. Whatever runs in it belongs to the host, which no method here touches."""

    program: tuple[str, ...] = ("-m", "workbench", "serve")

    def __init__(self, settings: Settings) -> None:
        self.settings = replace(settings, listen_port=0)
        self.log = settings.data_dir.parent / "server.log"
        self.url = ""
        self.key = ""
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Until it says that it is ready; at the address that it had before."""
        assert self._process is None
        self.settings.data_dir.mkdir(parents=True, exist_ok=True)
        with self.log.open("ab") as errors:
            self._process = subprocess.Popen(
                [sys.executable, *self.program],
                env={**os.environ, **self.settings.to_env()},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
            )
        # One that never says anything is ended, and the read with it.
        guard = threading.Timer(START_S, self._process.kill)
        guard.start()
        try:
            self._hear(self._process)
        finally:
            guard.cancel()

    def _hear(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        said = ""
        while _LAST_LINE not in said:
            line = process.stdout.readline().decode()
            assert line, f"it ended: {said}\n{self.log.read_text(encoding='utf-8')}"
            said += line
        ready, key = _READY.search(said), _KEY.search(said)
        assert ready is not None
        self.url = ready[1]
        self.settings = replace(self.settings, listen_port=int(ready[2]))
        if key is not None:
            self.key = key[1]

    @property
    def pid(self) -> int:
        """Of the process that runs now."""
        assert self._process is not None
        return self._process.pid

    def kill(self) -> None:
        """With -9."""
        self.end(signal.SIGKILL)

    def end(self, number: int = signal.SIGTERM) -> int:
        """By a signal; the exit code."""
        process, self._process = self._process, None
        assert process is not None
        process.send_signal(number)
        try:
            return process.wait(STOP_S)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(STOP_S)
            assert process.stdout is not None
            process.stdout.close()

    def close(self) -> None:
        """If it runs."""
        if self._process is not None:
            self.end()

    def client(self, **more: Any) -> httpx2.Client:
        """For raw requests, with its key."""
        headers = {"authorization": f"Bearer {self.key}"}
        return httpx2.Client(base_url=self.url, headers=headers, timeout=60.0, trust_env=False, **more)

    def bench(self) -> Workbench:
        """The SDK's."""
        return Workbench(self.url, self.key)


@contextlib.contextmanager
def own_settings(**more: Any) -> Iterator[Settings]:
    """A data folder of its own, whose host is told to leave at the end."""
    folder = Path(tempfile.mkdtemp(prefix="wb-", dir="/tmp"))
    settings = replace(Settings.from_env(os.environ), data_dir=folder / "data", pool_size=2, **more)
    try:
        yield settings
        end_hosts(settings)
    finally:
        assert remove_tree(folder)


def end_hosts(settings: Settings) -> None:
    """Those of the data folder, and what is in them."""
    for pid in host_pids(settings):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGTERM)
    eventually(lambda: not run_folders(settings), "the host has left")


@contextlib.contextmanager
def served(settings: Settings, kind: type[Server] = Server) -> Iterator[Server]:
    """One that runs, and at the end does not, however often it was killed meanwhile."""
    server = kind(settings)
    try:
        server.start()
        yield server
    finally:
        server.close()
