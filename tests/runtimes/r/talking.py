"""A real R kernel on a stock connection file, and the little that its tests say to it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import zmq
from jupyter_client.session import Session

SOURCE = Path(__file__).parents[3] / "src"
KERNEL = SOURCE / "workbench_guest" / "r" / "kernel.py"
HOOKS = SOURCE / "workbench_guest" / "packages" / "r" / "Rprofile"
PATIENCE_S = 15.0
_NAMES = ("shell", "iopub", "stdin", "control", "hb")


@dataclass
class Said:
    """What came of one cell."""

    messages: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    reply: dict[str, Any] = field(default_factory=dict)
    receipt: dict[str, Any] = field(default_factory=dict)

    def text(self, stream: str = "stdout") -> str:
        return "".join(said["text"] for kind, said in self.messages if kind == "stream" and said["name"] == stream)

    def of(self, kind: str) -> list[dict[str, Any]]:
        return [content for one, content in self.messages if one == kind]

    @property
    def result(self) -> dict[str, Any]:
        (only,) = self.of("execute_result")
        return dict(only["data"])

    @property
    def plain(self) -> str:
        return str(self.result["text/plain"])

    @property
    def pictures(self) -> list[dict[str, Any]]:
        return [one for one in self.of("display_data") if "image/png" in one["data"]]


class RKernel:
    """Started by its own command, in a group of its own, as the host does it."""

    def __init__(self, folder: Path, **env: str) -> None:
        ports = {f"{name}_port": number for number, name in enumerate(_NAMES, 1)}
        connection = {"transport": "ipc", "ip": str(folder / "s"), "key": "a key", "signature_scheme": "hmac-sha256"}
        file = folder / "connection.json"
        file.write_text(json.dumps({**connection, **ports}))
        # One that is killed leaves its own files for a while behind: they go with the folder.
        own = {"HOME": str(folder), "TMPDIR": str(folder)}
        base = {"PATH": os.environ["PATH"], **own, "LANG": "C.UTF-8", "WORKBENCH_PYTHON": sys.executable}
        self.process = subprocess.Popen(
            [sys.executable, "-I", str(KERNEL), str(file)],
            cwd=folder, env={**base, "R_PROFILE": str(HOOKS), **env}, start_new_session=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        self.session = Session(key=b"a key")
        self._context: zmq.Context[Any] = zmq.Context()
        self._context.linger = 0
        self.address = str(folder / "s")
        self.shell, self.iopub, self.control = (
            self.connect(zmq.DEALER, 1),
            self.connect(zmq.SUB, 2),
            self.connect(zmq.DEALER, 4),
        )
        self.iopub.subscribe(b"")
        assert self.next(self.iopub)["msg_type"] == "iopub_welcome"

    def connect(self, kind: int, number: int) -> zmq.Socket[bytes]:
        socket: zmq.Socket[bytes] = self._context.socket(kind)
        socket.rcvhwm = 100
        socket.reconnect_ivl = 20
        socket.connect(f"ipc://{self.address}-{number}")
        return socket

    def next(self, socket: zmq.Socket[bytes]) -> dict[str, Any]:
        assert socket.poll(int(PATIENCE_S * 1000)), f"nothing came; the process: {self.process.poll()}"
        frames = socket.recv_multipart()
        return dict(self.session.deserialize(self.session.feed_identities(frames)[1]))

    def ask(self, kind: str, content: dict[str, Any], channel: str = "shell") -> dict[str, Any]:
        socket = self.shell if channel == "shell" else self.control
        self.session.send(socket, kind, content)
        return dict(self.next(socket)["content"])

    def send(self, code: str, **options: Any) -> str:
        content = {"code": code, "silent": False, "store_history": True, "stop_on_error": False, **options}
        sent = self.session.send(self.shell, "execute_request", content)
        assert sent is not None
        return str(sent["header"]["msg_id"])

    def run(self, code: str, on: Callable[[str, dict[str, Any]], None] | None = None) -> Said:
        """To its end; `on` sees each message when it comes."""
        return self.rest_of(self.send(code), on)

    def rest_of(self, request: str, on: Callable[[str, dict[str, Any]], None] | None = None) -> Said:
        said = Said()
        while True:
            message = self.next(self.iopub)
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if on is not None:
                on(kind, content)
            if kind == "status" and content["execution_state"] == "idle":
                break
            said.messages.append((kind, content))
        reply = self.next(self.shell)
        assert reply["parent_header"]["msg_id"] == request
        said.reply, said.receipt = reply["content"], reply["metadata"].get("workbench", {})
        return said

    def interrupt(self) -> None:
        os.killpg(self.process.pid, signal.SIGINT)

    def run_interrupted(self, code: str) -> Said:
        """Interrupted when it has printed `go`, which the code has to do."""

        def on(kind: str, content: dict[str, Any]) -> None:
            if kind == "stream" and "go" in content["text"]:
                self.interrupt()

        return self.run(code, on)

    def close(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(PATIENCE_S)
        assert self.process.stdout is not None
        self.process.stdout.close()
        self._context.destroy(0)


@contextlib.contextmanager
def kernel(folder: Path, **env: str) -> Iterator[RKernel]:
    made = RKernel(folder, **env)
    try:
        yield made
    finally:
        made.close()


def until(condition: Callable[[], bool]) -> None:
    """Bounded, as every wait."""
    deadline = time.monotonic() + PATIENCE_S
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline
        pause.wait(0.01)
