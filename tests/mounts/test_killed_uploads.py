"""A server that is killed in the middle of an upload leaves a part that is gone on with by its name, or dropped."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.host.support import eventually

from workbench.data_folder import DataFolder
from workbench.errors import Conflict
from workbench.model.mounts import FilePath
from workbench.storage.disk import DiskMountStore
from workbench.testing.mount_driving import MINE, ROOMY, names, read

SENDING = """
import asyncio, pathlib, sys
from workbench.data_folder import DataFolder
from workbench.storage.disk import DiskMountStore
from workbench.testing.mount_driving import MINE, ROOMY

async def send():
    store = DiskMountStore(DataFolder(pathlib.Path(sys.argv[1])))
    async with store.stage(MINE, "data/file", name="named", quota=ROOMY, size=30_000_000) as staged:
        for number in range(100):
            await staged.write(bytes([number]) * 10_000)
        print("there", flush=True)
        await asyncio.sleep(60)

asyncio.run(send())
"""


@pytest.fixture
def data(short_dir: Path) -> DataFolder:
    data = DataFolder(short_dir / "data")
    data.make()
    return data


def killed_sender(data: DataFolder) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SENDING, str(data.path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as sender:
        assert sender.stdout is not None
        assert sender.stdout.readline() == b"there\n"
        sender.send_signal(signal.SIGKILL)


async def test_it_is_gone_on_with_by_its_name(data: DataFolder) -> None:
    killed_sender(data)
    store = DiskMountStore(data)
    assert await names(store) == []
    assert await store.staged(MINE, name="named") == 1_000_000
    async with store.stage(MINE, FilePath("data/file"), name="named", quota=ROOMY, size=1_000_005) as staged:
        assert staged.offset == 1_000_000
        await staged.write(b"end\n.")
        await staged.commit()
    content = await read(store, "data/file")
    assert content == b"".join(bytes([number]) * 10_000 for number in range(100)) + b"end\n."
    file = (data.files / MINE / "data" / "file").stat()
    assert file.st_blocks * 512 < 1_200_000, "what was reserved for more is given back"


async def test_it_is_dropped_when_nobody_comes_back(data: DataFolder) -> None:
    killed_sender(data)
    store = DiskMountStore(data)
    assert await store.drop_staged(older_than_s=3600) == 0
    part = data.uploads / MINE / "named"
    os.utime(part, (time.time() - 7200, time.time() - 7200))
    assert await store.drop_staged(older_than_s=3600) == 1
    assert list(data.uploads.iterdir()) == []
    assert await store.staged(MINE, name="named") == 0


async def test_another_process_that_writes_it_holds_it(data: DataFolder) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SENDING, str(data.path)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    ) as sender:
        try:
            assert sender.stdout is not None
            assert sender.stdout.readline() == b"there\n"
            store = DiskMountStore(data)
            with pytest.raises(Conflict, match="another connection"):
                async with store.stage(MINE, FilePath("data/file"), name="named", quota=ROOMY):
                    pass
            assert await store.drop_staged(older_than_s=-60) == 0
            assert await store.staged(MINE, name="named") == 1_000_000
        finally:
            sender.kill()
    eventually(lambda: sender.returncode is not None, "it has ended")
    async with store.stage(MINE, FilePath("data/file"), name="named", quota=ROOMY) as staged:
        assert staged.offset == 1_000_000
