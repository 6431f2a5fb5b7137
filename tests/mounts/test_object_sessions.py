"""Sessions whose files are in an object store: cells, losses, the command line and a server, with real sandboxes."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path

import pytest
from tests.host.support import all_pids, eventually, host_pids, output_of, read, workbench
from tests.objects import ObjectServer, running_objects
from tests.restart.server import end_hosts, own_settings, served

from workbench.core import mount_requests, requests
from workbench.core.workbench import Workbench
from workbench.errors import StoreUnavailable
from workbench.model.execution import Outcome
from workbench.model.ids import SessionId
from workbench.settings import Settings
from workbench.storage.opening import FilesPlace
from workbench.wiring import open_workbench

pytestmark = pytest.mark.timeout(240)

ONE = SessionId("one")
_SOON_S = 30.0


@pytest.fixture(scope="module")
def server() -> Iterator[ObjectServer]:
    with running_objects() as running:
        yield running


@pytest.fixture
def place(server: ObjectServer) -> FilesPlace:
    return server.new_place()


@contextlib.contextmanager
def settings_for(place: FilesPlace) -> Iterator[Settings]:
    with own_settings(
        files_url=place.url,
        files_endpoint=place.endpoint,
        files_access_key=place.access_key,
        files_secret_key=place.secret_key,
    ) as settings:
        yield settings


@pytest.fixture
def settings(place: FilesPlace) -> Iterator[Settings]:
    with settings_for(place) as made:
        yield made


@contextlib.asynccontextmanager
async def bench_of(settings: Settings) -> AsyncIterator[Workbench]:
    async with open_workbench(settings, os.environ) as bench:
        yield bench


async def soon(condition: Callable[[], Awaitable[bool]], what: str) -> None:
    end = time.monotonic() + _SOON_S
    while not await condition():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.05)


def run(code: str) -> requests.RunCell:
    return requests.RunCell(session=ONE, code=code)


async def upload(bench: Workbench, path: str, content: bytes) -> None:
    async with bench.mounts.stage(mount_requests.StageFile(session=ONE, path=path)) as staged:
        await staged.write(content)
        await staged.commit()


async def test_what_a_cell_wrote_is_soon_in_the_bucket_and_comes_back_after_the_loss_of_the_disk(
    settings: Settings, place: FilesPlace, server: ObjectServer
) -> None:
    async with bench_of(settings) as bench:
        await bench.create_session(requests.CreateSession(session=ONE))
        await upload(bench, "in/data.csv", b"a,b\n1,2\n")
        code = (
            "import pathlib\ntop = pathlib.Path('/mnt/files/out'); top.mkdir()\n(top / 'x.txt').write_text('written')"
        )
        assert (await bench.run_cell(run(code))).outcome is Outcome.OK

        async def is_saved() -> bool:
            return server.keys(place) == {"one/in/data.csv": 8, "one/out/x.txt": 7}

        await soon(is_saved, "the file is in the bucket")
        assert (await bench.mounts.describe(mount_requests.DescribeMount(session=ONE))).use.unsaved == 0
    end_hosts(settings)
    shutil.rmtree(settings.data_dir / "files")
    shutil.rmtree(settings.data_dir / "replicas")
    async with bench_of(settings) as bench:
        code = (
            "import os, pathlib\nprint(pathlib.Path('/mnt/files/out/x.txt').read_text(), end=' ')\n"
            "pathlib.Path('/mnt/files/in/data.csv').write_text('its own to change')\n"
            "print(os.stat('/mnt/files/out').st_uid == os.getuid())"
        )
        result = await bench.run_cell(run(code))
        assert result.stdout.text == "written True\n", result
        await bench.delete_session(requests.DeleteSession(session=ONE))
        assert server.keys(place) == {}
    assert not list((settings.data_dir / "replicas").iterdir())


@pytest.mark.long
async def test_cells_go_on_while_the_store_is_away_and_it_catches_up() -> None:
    with running_objects() as server:
        place = server.new_place()
        with settings_for(place) as settings:
            async with bench_of(settings) as bench:
                await bench.create_session(requests.CreateSession(session=ONE))
                await bench.run_cell(run("x = 1"))
                server.stop()
                began = time.monotonic()
                result = await bench.run_cell(run("open('/mnt/files/y', 'w').write('kept here'); print(x)"))
                assert (result.outcome, result.stdout.text) == (Outcome.OK, "1\n")
                # The answer waits for nobody.
                assert time.monotonic() - began < 5.0
                with pytest.raises(StoreUnavailable):
                    await upload(bench, "z", b"not kept")
                described = await bench.mounts.describe(mount_requests.DescribeMount(session=ONE))
                assert described.use.unsaved == 1
                server.start()
                await bench.run_cell(run("x"))

                async def is_saved() -> bool:
                    return "one/y" in server.keys(place)

                await soon(is_saved, "it catches up")
                assert "one/z" not in server.keys(place)


def test_a_command_ends_only_after_its_files_are_saved_and_no_host_knows_the_credentials(
    settings: Settings, place: FilesPlace, server: ObjectServer
) -> None:
    code = "import os; open('/mnt/files/by-command', 'w').write(str(dict(os.environ)))"
    status, _, errors = output_of(workbench(settings, "exec", "-s", "one", code))
    assert status == 0, errors
    assert "one/by-command" in server.keys(place)
    inside = (settings.data_dir / "files/one/by-command").read_text(encoding="utf-8")
    hosts = host_pids(settings)
    assert hosts
    for secret in (place.access_key, place.secret_key, place.endpoint):
        assert secret not in inside
        for pid in hosts:
            assert secret.encode() not in read(f"/proc/{pid}/environ")
    family = [pid for pid in all_pids() if pid in hosts or _parent(pid) in hosts]
    assert len(family) > len(hosts)
    assert not [pid for pid in family if place.secret_key.encode() in read(f"/proc/{pid}/environ")]


def _parent(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[1])
    return 0


@pytest.mark.long
def test_under_a_server_what_long_cells_and_processes_write_is_saved_while_they_run(
    settings: Settings, place: FilesPlace, server: ObjectServer
) -> None:
    with served(settings) as bench_server, bench_server.bench() as bench:
        session = bench.create(id="one")
        session.run(
            "import subprocess\nsubprocess.Popen(['sh', '-c', 'sleep 2; echo late > /mnt/files/late; sleep 300'])"
        )
        eventually(lambda: "one/late" in server.keys(place), "what a process wrote after its cell is saved", 60.0)
        session.delete()
        eventually(lambda: not server.keys(place), "the objects go with the session")
