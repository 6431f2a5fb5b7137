"""Where a program finds what to listen at, and we find it: a folder that is there only until it answers."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import stat
import tempfile
import zlib
from pathlib import Path

# Ports of an ipc transport are ends of names. Nobody asks for heartbeats; every program wants a name for them.
PORTS = {"shell": 1, "stdin": 2, "control": 3, "iopub": 4, "hb": 5}
CHANNELS = ("shell", "stdin", "control", "iopub")
"""in the order that the host passes its sockets"""
# What a socket's name may have, with room for what a program adds to it.
_MOST_PATH, _ROOM = 96, 16
_SCRATCH = "/tmp"
_SOCKET = "k"


class Place:
    """Made for one program. `close` leaves nothing of it, and may be called twice."""

    def __init__(self, kernel: str) -> None:
        # No id has a comma: what is another kernel's is left alone, and what is another sandbox's where /tmp is the
        # machine's own, in which all have a kernel of this name.
        prefix = f".kernel-{kernel},{_whose()},"
        parent = _short_parent(len(prefix))
        # Of a memory before this one that was killed while it started.
        for left in parent.glob(f"{prefix}*"):
            shutil.rmtree(left, ignore_errors=True)
        self._folder: Path | None = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        self._names = {name: f"{self._folder}/{_SOCKET}-{PORTS[name]}" for name in CHANNELS}
        self._found: dict[str, int] = {}

    def write_file(self, key: str, name: str) -> str:
        """The connection file, as Jupyter has it; its path."""
        assert self._folder is not None
        content: dict[str, str | int] = {
            "transport": "ipc",
            "ip": f"{self._folder}/{_SOCKET}",
            "key": key,
            "signature_scheme": "hmac-sha256",
            "kernel_name": name,
        }
        content |= {f"{channel}_port": port for channel, port in PORTS.items()}
        path = self._folder / f"kernel-{secrets.token_hex(4)}.json"
        path.write_text(json.dumps(content), encoding="utf-8")
        return str(path)

    def look(self) -> bool:
        """Whether the program has all of its sockets. We reach them without names from then on."""
        for name, path in self._names.items():
            if name not in self._found:
                with contextlib.suppress(OSError):
                    descriptor = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
                    if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                        self._found[name] = descriptor
                    else:
                        os.close(descriptor)
        return len(self._found) == len(CHANNELS)

    def connect(self, channel: str) -> socket.socket | None:
        """To the program; None if it does not take us now."""
        made = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC | socket.SOCK_NONBLOCK)
        try:
            made.connect(f"/proc/self/fd/{self._found[channel]}")
        except OSError:
            made.close()
            return None
        return made

    @property
    def is_visible(self) -> bool:
        """Whether the folder is still there."""
        return self._folder is not None

    def hide(self) -> None:
        """Nobody else in the sandbox finds the sockets, or the key, from now on; nothing is left to be swept up."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None

    def close(self) -> None:
        """Everything."""
        self.hide()
        while self._found:
            os.close(self._found.popitem()[1])


def _whose() -> str:
    """A short word for the sandbox: its id, and a folder, as two hosts may have sandboxes of one id."""
    words = (os.environ.get(name, "") for name in ("WORKBENCH_SANDBOX", "TMPDIR"))
    return f"{zlib.crc32(os.fsencode(':'.join(words))):08x}"


def _short_parent(more: int) -> Path:
    """Where the sandbox's own files for a while are, if that is a folder, and a name below it not too long."""
    told = os.environ.get("TMPDIR", _SCRATCH)
    fits = len(os.fsencode(told)) + more + _ROOM <= _MOST_PATH
    return Path(told if fits and os.access(told, os.W_OK | os.X_OK) else _SCRATCH)
