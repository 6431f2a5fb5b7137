"""Somebody who answers what hooks ask, on a real socket with a name of its own."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import struct
import subprocess
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import workbench_guest

GUEST = Path(workbench_guest.__file__).resolve().parent
Answer = Callable[[dict[str, Any]], tuple[Any, str, str]]


class Desk:
    """What was asked, and how programs are run that ask here."""

    def __init__(self, answer: Answer) -> None:
        self.asked: list[dict[str, Any]] = []
        self.address = f"@desk-{uuid.uuid4().hex}"
        self._answer = answer
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.bind("\0" + self.address[1:])
        self._socket.listen()

    def serve(self) -> None:
        """Until it is closed."""
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                with connection, connection.makefile("rwb") as file:
                    (size,) = struct.unpack(">I", file.read(4))
                    call = json.loads(file.read(size))
                    assert call["operation"] == "install"
                    self.asked.append(call["arguments"])
                    result, error, code = self._answer(call["arguments"])
                    told = json.dumps({"result": result, "error": error, "code": code}).encode()
                    file.write(struct.pack(">I", len(told)) + told)

    def close(self) -> None:
        """Who accepts is let go."""
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()

    def environment(self, **more: str) -> dict[str, str]:
        """As in a sandbox, with this desk in place of the workbench."""
        packages = GUEST / "packages"
        return {
            "PATH": f"{packages}/bin:{os.environ['PATH']}",
            "HOME": "/nonexistent",
            "LANG": "C.UTF-8",
            "NODE_OPTIONS": f"--require={packages}/node/hook.cjs",
            "R_PROFILE": f"{packages}/r/Rprofile",
            "WORKBENCH_CALLS": self.address,
            **more,
        }

    def run(self, *argv: str, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
        """A program, to its end."""
        return subprocess.run(
            argv, cwd=cwd, env=self.environment(**more), capture_output=True, text=True, timeout=60, check=False
        )


@contextlib.contextmanager
def answering(answer: Answer) -> Iterator[Desk]:
    desk = Desk(answer)
    thread = threading.Thread(target=desk.serve)
    thread.start()
    try:
        yield desk
    finally:
        desk.close()
        thread.join(timeout=10)
