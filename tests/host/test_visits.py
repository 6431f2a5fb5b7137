"""A door for notebooks keeps no sandbox running once nobody comes by, and whoever comes finds it awake."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import zmq
from tests.host.support import WAIT_S
from tests.kernel.notebook import Notebook, cell, connection_info, open_notebook

from workbench.data_folder import DataFolder
from workbench.engines.options import EngineOptions
from workbench.engines.registry import make_engine
from workbench.guest_trees import remove_tree
from workbench.host.cells import visits
from workbench.host.cells.snapshots import SnapshotPolicy
from workbench.host.service import HostService
from workbench.images.build import find_image
from workbench.images.recipe import load_recipe
from workbench.kernels.launcher import JupyterLauncher
from workbench.model.ids import new_host_id, new_sandbox_id
from workbench.settings import Settings
from workbench.wire import host as wire
from workbench.wire import kernels

KERNEL = "main"
RECENT_S = 0.3


@dataclass
class Visited:
    """A sandbox with an open door, in a host that is part of this process."""

    service: HostService
    sandbox: str
    connection_file: str

    def report(self) -> wire.SandboxReport:
        return self.service.describe(wire.DescribeSandbox(sandbox=self.sandbox))

    async def freeze(self) -> bool:
        return (await self.service.freeze(wire.FreezeSandbox(sandbox=self.sandbox))).frozen

    async def until_frozen(self) -> None:
        async with asyncio.timeout(WAIT_S):
            while not await self.freeze():
                await asyncio.sleep(0.02)

    async def until_thawed(self) -> None:
        async with asyncio.timeout(WAIT_S):
            while self.report().frozen:
                await asyncio.sleep(0.001)


@pytest.fixture
async def service(short_dir: Path) -> AsyncIterator[HostService]:
    settings = Settings.from_env(os.environ)
    data = DataFolder(short_dir / "data")
    data.make()
    run = data.run_folder(new_host_id())
    run.path.mkdir(mode=0o700)
    image = find_image(settings.images_dir, load_recipe("python"))
    options = EngineOptions(
        image=image,
        run_dir=run.path,
        files_root=data.files,
        packages_root=data.packages,
        group_name=run.group_name,
        pool_size=1,
    )
    engine = make_engine(settings.engine, options)
    try:
        await engine.start()
        made = HostService(
            engine=engine,
            data=data,
            run=run,
            level=settings.min_level,
            spool_max_bytes=2**20,
            limits_by="",
            find_image=lambda: image,
            launcher=JupyterLauncher(run.path / "kernels"),
            cell_limit_max_s=WAIT_S,
            policy=SnapshotPolicy(kept=1),
        )
        yield made
        await made.aclose()
    finally:
        await engine.aclose()
        remove_tree(run.path)


@pytest.fixture
async def visited(service: HostService, monkeypatch: pytest.MonkeyPatch) -> Visited:
    monkeypatch.setattr(visits, "RECENT_S", RECENT_S)
    sandbox = new_sandbox_id()
    await service.create(wire.CreateSandbox(sandbox=sandbox, kernel=True))
    await service.kernels.answer(kernels.StartKernel(sandbox=sandbox, kernel=KERNEL, epoch=1))
    assert service.describe(wire.DescribeSandbox(sandbox=sandbox)).attached_idle_s is None
    opened = await service.kernels.answer(kernels.AttachKernel(sandbox=sandbox, kernel=KERNEL))
    assert isinstance(opened, kernels.AttachReport)
    return Visited(service, sandbox, opened.connection_file)


async def test_a_door_keeps_the_sandbox_awake_only_for_a_moment(visited: Visited) -> None:
    assert not await visited.freeze(), "a notebook was let in just now"
    await visited.until_frozen()
    idle_s = visited.report().attached_idle_s
    assert idle_s is not None
    assert idle_s >= RECENT_S
    await visited.service.close(wire.CloseSandbox(sandbox=visited.sandbox, if_frozen=True))


async def test_whatever_a_notebook_asks_thaws_and_is_answered(visited: Visited) -> None:
    async with open_notebook(visited.connection_file) as notebook:
        await notebook.run("kept = [1]")
        for kind, content, channel in (
            ("kernel_info_request", {}, "shell"),
            ("kernel_info_request", {}, "control"),
            ("complete_request", {"code": "kep", "cursor_pos": 3}, "shell"),
            ("inspect_request", {"code": "kept", "cursor_pos": 4, "detail_level": 0}, "shell"),
            ("interrupt_request", {}, "control"),
            ("execute_request", cell("kept.append(2)"), "shell"),
        ):
            await visited.until_frozen()
            assert (await notebook.ask(kind, content, channel)).reply["status"] == "ok", kind
            assert not visited.report().frozen, kind
            assert (visited.report().attached_idle_s or 0) < WAIT_S
        await visited.until_frozen()
        notebook.send("comm_open", {"comm_id": "c", "target_name": "none", "data": {}})
        await visited.until_thawed()
        assert (await notebook.run("kept")).result == "[1, 2]"


async def test_what_a_notebook_sends_at_once_to_a_frozen_kernel_keeps_its_order(visited: Visited) -> None:
    async with open_notebook(visited.connection_file) as notebook:
        await notebook.run("seen = []")
        await visited.until_frozen()
        requests = [notebook.send("execute_request", cell(f"seen.append({number})")) for number in range(5)]
        async with asyncio.timeout(WAIT_S):
            for request in requests:
                assert (await notebook.answer_of(request)).reply["status"] == "ok"
        assert (await notebook.run("seen")).result == "[0, 1, 2, 3, 4]"


async def test_neither_a_heartbeat_nor_a_stranger_thaws(visited: Visited) -> None:
    info = connection_info(visited.connection_file)
    await visited.until_frozen()
    with zmq.Context() as context:
        for port, kind in ((info["hb_port"], zmq.REQ), (info["shell_port"], zmq.DEALER)):
            with context.socket(kind) as socket:
                socket.setsockopt(zmq.LINGER, 0)
                socket.connect(f"ipc://{info['ip']}-{port}")
                socket.send_multipart([b"<IDS|MSG>", b"no signature", b'{"msg_id": "m"}', b"{}", b"{}", b"{}"])
                await asyncio.to_thread(socket.poll, 300)
                assert visited.report().frozen


async def test_a_sandbox_can_be_thawed_without_asking_anything_of_it(visited: Visited) -> None:
    await visited.until_frozen()
    for _ in range(2):
        await visited.service.thaw(wire.ThawSandbox(sandbox=visited.sandbox))
        assert not visited.report().frozen


async def test_a_long_cell_of_a_notebook_is_use_to_its_end(visited: Visited) -> None:
    async with open_notebook(visited.connection_file) as notebook:
        await notebook.run("")
        running = asyncio.create_task(_sleep(notebook))
        await asyncio.sleep(2 * RECENT_S)
        assert visited.report().attached_idle_s == 0.0
        assert not await visited.freeze()
        assert (await running) == "'slept'"
        assert (visited.report().attached_idle_s or 0) < WAIT_S


async def _sleep(notebook: Notebook) -> str | None:
    return (await notebook.run(f"import time; time.sleep({4 * RECENT_S}); 'slept'")).result
