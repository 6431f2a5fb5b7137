"""However fast a guest swaps links, folders, files and FIFOs: no call of the host leaves the mount, or waits for it."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import random
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from tests.mounts import attacks
from tests.restart.server import own_settings

from workbench.contracts.mounts import MountStore
from workbench.core import requests
from workbench.data_folder import DataFolder
from workbench.errors import WorkbenchError
from workbench.model.ids import MountId, SessionId
from workbench.model.mounts import FilePath, FilesWanted, Quota
from workbench.storage.disk import DiskMountStore
from workbench.wiring import open_workbench

MINE = MountId("mine")
LASTING_S = 10.0
# One call of the host; on two busy cores, and with folders that are deleted while they are filled.
BOUND_S = 5.0
CANARY = b"CANARY in a mine "
SIZE = 7777
SECRET_NAME = "name-that-is-a-secret"
PLACES = ("f", "d/f", "d/deep/f", "g", "d", "new", "d/new", "d/deep")
QUOTA = Quota(bytes=2**30, files=100_000)
UPLOAD = b"from outside " * 3000


@pytest.fixture
def outside(short_dir: Path) -> Path:
    """With what nobody may read, change or delete."""
    folder = short_dir / "outside"
    (folder / "deep").mkdir(parents=True)
    data = (CANARY * 1000)[:SIZE]
    for name in ("canary", "f", "deep/f", SECRET_NAME, "g"):
        (folder / name).write_bytes(data)
        (folder / name).chmod(0o444)
    # The attackers' own links lead them here as well; root of the host may write all the same.
    for closed in (folder, folder / "deep"):
        closed.chmod(0o555)
    return folder


def seen(folder: Path) -> dict[str, tuple[object, ...]]:
    """Everything about it that a write, a deletion or a change of rights would change."""
    found: dict[str, tuple[object, ...]] = {}
    for path in [folder, *folder.rglob("*"), Path("/etc/passwd")]:
        now = path.lstat()
        content = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (
            now.st_ino,
            now.st_mode,
            now.st_uid,
            now.st_nlink,
            now.st_mtime_ns,
            now.st_ctime_ns,
            content,
        )
    return found


@dataclass
class Tally:
    """What came of all calls."""

    done: dict[str, int] = field(default_factory=dict)
    refused: dict[str, int] = field(default_factory=dict)
    slowest_s: float = 0.0
    leaks: list[str] = field(default_factory=list)

    async def call(self, what: str, work: Callable[[], Awaitable[None]]) -> None:
        """One of the host's; whatever is raised beside our own errors fails the test."""
        began = time.monotonic()
        try:
            await work()
            self.done[what] = self.done.get(what, 0) + 1
        except WorkbenchError as refusal:
            self.refused[type(refusal).__name__] = self.refused.get(type(refusal).__name__, 0) + 1
        self.slowest_s = max(self.slowest_s, time.monotonic() - began)

    def read(self, what: str, data: bytes) -> None:
        if CANARY in data or b"root:" in data:
            self.leaks.append(f"{what}: {data[:40]!r}")


class Victim:
    """All that the host does in a mount, at random places of it."""

    def __init__(self, store: MountStore, seed: int, tally: Tally, mount: MountId = MINE) -> None:
        self._store = store
        self._mount = mount
        self._tally = tally
        self._seed = seed
        self._chance = random.Random(seed)

    async def work(self, until: float) -> None:
        calls = (self._read, self._read, self._list, self._upload, self._take, self._delete, self._measure)
        while time.monotonic() < until:
            call = self._chance.choice(calls)
            await self._tally.call(call.__name__.strip("_"), call)

    def _place(self) -> FilePath:
        return FilePath(self._chance.choice(PLACES))

    async def _read(self) -> None:
        async with self._store.open(self._mount, self._place()) as opened:
            data = await asyncio.to_thread(os.pread, opened.descriptor, 100_000, 0)
            self._tally.read("read", data)
            if opened.file.size == SIZE:
                self._tally.leaks.append("the size of a file outside")

    async def _list(self) -> None:
        page = await self._store.list(
            self._mount, FilesWanted(prefix=self._chance.choice(("", "d", "d/", "d/deep/")), limit=500)
        )
        for file in page.files:
            if SECRET_NAME in file.path or "canary" in file.path or file.size == SIZE:
                self._tally.leaks.append(f"listed: {file}")

    async def _upload(self) -> None:
        name = f"up-{self._seed}"
        async with self._store.stage(self._mount, self._place(), name=name, quota=QUOTA, size=len(UPLOAD)) as staged:
            try:
                if not staged.offset:
                    await staged.write(UPLOAD)
                await staged.commit()
            finally:
                await staged.discard()

    async def _take(self) -> None:
        out, into = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            os.write(into, UPLOAD)
            name = f"take-{self._seed}"
            async with self._store.stage(self._mount, self._place(), name=name, quota=QUOTA) as staged:
                try:
                    while staged.offset < len(UPLOAD):
                        await staged.take(out, len(UPLOAD) - staged.offset)
                    await staged.commit()
                finally:
                    await staged.discard()
        finally:
            os.close(out)
            os.close(into)

    async def _delete(self) -> None:
        await self._store.delete(self._mount, self._place())

    async def _measure(self) -> None:
        await self._store.measure(self._mount)


@contextlib.contextmanager
def attackers(folder: Path, outside: Path, number: int) -> Iterator[None]:
    """Processes with all rights in the folder."""
    running = [
        subprocess.Popen([sys.executable, attacks.__file__, str(outside), str(LASTING_S * 3), str(seed)], cwd=folder)
        for seed in range(number)
    ]
    try:
        yield
        assert all(one.poll() is None for one in running), "the attack was still going on"
    finally:
        for one in running:
            one.kill()
            one.wait()


@contextlib.contextmanager
def naive_reader(folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Ends with 0 when it was led outside."""
    reader = subprocess.Popen([sys.executable, attacks.__file__, "read", str(folder), str(LASTING_S)])
    try:
        yield reader
        reader.wait(LASTING_S * 2)
    finally:
        reader.kill()
        reader.wait()


def check(tally: Tally, before: dict[str, tuple[object, ...]], outside: Path) -> None:
    assert tally.leaks == []
    assert seen(outside) == before
    assert tally.slowest_s < BOUND_S, tally
    for what in ("read", "list", "upload", "take", "delete", "measure"):
        assert tally.done.get(what, 0) > 10, tally
    assert tally.refused.get("Conflict", 0) > 10, "the attack was met"
    assert "StoreUnavailable" not in tally.refused, tally


@pytest.mark.isolation
async def test_processes_in_the_folder_lead_nowhere(short_dir: Path, outside: Path) -> None:
    data = DataFolder(short_dir / "data")
    data.make()
    folder = data.files / MINE
    folder.mkdir()
    if os.geteuid() == 0:
        os.chown(folder, 65534, 65534)
    before, tally = seen(outside), Tally()
    store = DiskMountStore(data)
    descriptors = len(os.listdir("/proc/self/fd"))
    with attackers(folder, outside, 2), naive_reader(folder) as naive:
        until = time.monotonic() + LASTING_S
        await asyncio.gather(*(Victim(store, seed, tally).work(until) for seed in range(3)))
    check(tally, before, outside)
    assert naive.returncode == 0, "who looks first and opens then is led outside by the same attack"
    assert len(os.listdir("/proc/self/fd")) == descriptors
    await store.remove(MINE)
    assert not folder.exists()


INSIDE = f"""
import contextlib, ctypes, os, random, shutil, time
{inspect.getsource(attacks.attack)}
child = os.fork()
deeds = attack('/mnt/files', OUTSIDE, {LASTING_S + 2}, 1 if child else 2)
if not child:
    os._exit(0)
os.waitpid(child, 0)
print(deeds)
"""


async def test_code_in_a_sandbox_leads_nowhere(outside: Path) -> None:
    before, tally = seen(outside), Tally()
    with own_settings() as settings:
        async with open_workbench(settings, dict(os.environ)) as bench:
            session = SessionId("attacker")
            await bench.create_session(requests.CreateSession(session=session))
            await bench.run_cell(requests.RunCell(session=session, code="open('/mnt/files/f', 'w').close()"))
            attacking = asyncio.create_task(
                bench.run_cell(requests.RunCell(session=session, code=f"OUTSIDE = {str(outside)!r}\n{INSIDE}"))
            )
            store, mount = DiskMountStore(DataFolder(settings.data_dir)), MountId(session)
            until = time.monotonic() + LASTING_S
            await asyncio.gather(*(Victim(store, seed, tally, mount).work(until) for seed in range(3)))
            attacked = await attacking
            assert int(attacked.stdout.text) > 1000, attacked
            await bench.delete_session(requests.DeleteSession(session=session))
    check(tally, before, outside)
