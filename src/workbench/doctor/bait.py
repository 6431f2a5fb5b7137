"""What the host lays out for the attacks to find: files, sockets, segments and processes that hold a canary.

Everything is made for one proof and removed with it.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import selectors
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

from workbench_guest.attacks.ipc import Objects
from workbench_guest.attacks.registry import Given

CANARY_VARIABLE = "WORKBENCH_PROOF_CANARY"
_POLL_S = 0.03
_JOIN_S = 5.0
_SETUID, _DEVICE = "setuid-cat", "device-null"


class Victims:
    """Processes of the host's that an attack may try to end, for one place where attacks run."""

    def __init__(self, marker: str) -> None:
        self._made: list[subprocess.Popen[bytes]] = []
        self.for_signal = self._start(f"{marker}-victim")
        self.for_target = self._start(f"{marker}-target")

    def _start(self, word: str) -> subprocess.Popen[bytes]:
        # Its input ends with us, whatever ends us, and so does it.
        waits = "import sys; sys.stdin.read()"
        process = subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", waits, word], env={}, stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)  # fmt: skip
        self._made.append(process)
        return process

    def close(self) -> None:
        """End them."""
        for process in self._made:
            process.kill()
            process.communicate()


class Place:
    """One place where attacks run: its own names, so that what one leaves behind is not taken for another's."""

    def __init__(self) -> None:
        self.marker = f"wbp-{secrets.token_hex(6)}"
        self.victims = Victims(self.marker)
        self._seen: set[str] = set()

    def knock(self) -> None:
        """See whether the attack that wants to be reachable is."""
        with socket.socket(socket.AF_UNIX) as sock, contextlib.suppress(OSError):
            sock.connect(f"\0{self.marker}-listen")
            self._seen.add("network-listen-on-host")

    def seen(self) -> frozenset[str]:
        """Attacks of this place whose effect shows on the host; removes what they left."""
        if self.victims.for_signal.poll() is not None:
            self._seen.add("signal-host")
        for name, path in (("tmp-shared", f"/tmp/{self.marker}-left"), ("shm-shared", f"/dev/shm/{self.marker}-left")):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(path)
                self._seen.add(name)
        return frozenset(self._seen)

    def close(self) -> None:
        """Whatever happened."""
        self.seen()
        # Where there are no walls, what the other session left in its scratch is on the host as well.
        for folder in ("/tmp", "/dev/shm", "/home/user"):
            with contextlib.suppress(OSError):
                os.unlink(f"{folder}/{self.marker}-scratch")
        self.victims.close()


class Bait:
    """Made by `laid_out`."""

    def __init__(self, folder: Path, files_root: Path) -> None:
        self.canary = f"wbc{secrets.token_hex(16)}"
        self.folder = folder
        self.inside, self.outside = Place(), Place()
        self._files_root = files_root
        self._key = 0x40000000 | secrets.randbits(28)
        self._word = f"wbp-{secrets.token_hex(6)}"
        self._stop = threading.Event()
        self._sockets = self._listen()
        self._thread = threading.Thread(target=self._serve, name="bait", daemon=True)
        self._objects = Objects(self._key, f"/{self._word}", self.canary.encode())
        self._write()
        self._thread.start()

    def _listen(self) -> dict[str, socket.socket]:
        listening = {"abstract": socket.socket(socket.AF_UNIX), "path": socket.socket(socket.AF_UNIX),
                     "tcp": socket.socket(socket.AF_INET), "tcp6": socket.socket(socket.AF_INET6)}  # fmt: skip
        listening["abstract"].bind(f"\0{self._word}")
        listening["path"].bind(str(self.folder / "socket"))
        listening["tcp"].bind(("127.0.0.1", 0))
        with contextlib.suppress(OSError):
            listening["tcp6"].bind(("::1", 0))
        for sock in listening.values():
            with contextlib.suppress(OSError):
                sock.listen(8)
            sock.setblocking(False)
        return listening

    def _serve(self) -> None:
        """Tell the canary to whoever connects, and knock where an attack wants to be reached."""
        with selectors.DefaultSelector() as selector:
            for sock in self._sockets.values():
                selector.register(sock, selectors.EVENT_READ)
            while not self._stop.is_set():
                for key, _ in selector.select(_POLL_S):
                    with contextlib.suppress(OSError):
                        connection, _ = self._sockets[_name_of(self._sockets, key.fd)].accept()
                        with connection:
                            connection.sendall(self.canary.encode())
                self.inside.knock()
                self.outside.knock()

    def _write(self) -> None:
        for name in ("files", "shm", "scratch"):
            (self.folder / name).mkdir()
        for path in (self.secret_file, self.folder / "scratch" / f"{self.outside.marker}-scratch"):
            path.write_text(self.canary)
        self.shm_file.write_text(self.canary)
        put_privileged(self.folder / "files")

    @property
    def secret_file(self) -> Path:
        """On the host, and nowhere in a sandbox."""
        return self.folder / "secret"

    @property
    def shm_file(self) -> Path:
        """A POSIX segment of the host's."""
        return Path("/dev/shm") / self._word

    def given(self, *, inside: bool) -> Given:
        """What the attacks are told, in a sandbox or outside."""
        place = self.inside if inside else self.outside
        files = "/mnt/files" if inside else str(self.folder / "files")
        half = len(self.canary) // 2
        return Given(
            folder="/tmp" if inside else str(self.folder / "scratch"),
            shm="/dev/shm" if inside else str(self.folder / "shm"),
            files=files,
            secret_file=str(self.secret_file),
            files_root=str(self._files_root),
            marker=place.marker,
            tcp_port=int(self._sockets["tcp"].getsockname()[1]),
            tcp6_port=int(self._sockets["tcp6"].getsockname()[1]),
            abstract_name=self._word,
            socket_path=str(self.folder / "socket"),
            ipc_key=self._key,
            queue=f"/{self._word}",
            shm_name=self._word,
            victim_pid=place.victims.for_signal.pid,
            target_pid=1 if inside else place.victims.for_target.pid,
            setuid_program=f"{files}/{_SETUID}",
            device_node=f"{files}/{_DEVICE}",
            canary_halves=(self.canary[:half], self.canary[half:]),
        )

    def close(self) -> None:
        """Remove all of it."""
        self._stop.set()
        self._thread.join(_JOIN_S)
        for sock in self._sockets.values():
            sock.close()
        self._objects.remove()
        self.shm_file.unlink(missing_ok=True)
        self.inside.close()
        self.outside.close()


def _name_of(sockets: dict[str, socket.socket], descriptor: int) -> str:
    return next(name for name, sock in sockets.items() if sock.fileno() == descriptor)


def put_privileged(files: Path) -> None:
    """A setuid-root program and a device, where the host may make them; an ordinary user may not."""
    if os.geteuid() != 0:
        return
    program = files / _SETUID
    shutil.copyfile("/bin/cat", program)
    os.chown(program, 0, 0)
    program.chmod(0o4755)
    with contextlib.suppress(PermissionError):
        os.mknod(files / _DEVICE, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        (files / _DEVICE).chmod(0o666)


@contextlib.contextmanager
def laid_out(files_root: Path) -> Iterator[Bait]:
    """All baits, for as long as the proof lasts."""
    with tempfile.TemporaryDirectory(prefix="wbp-") as folder:
        # The control of the setuid row starts its program as nobody.
        os.chmod(folder, 0o711)  # noqa: S103
        bait = Bait(Path(folder), files_root)
        try:
            yield bait
        finally:
            bait.close()
