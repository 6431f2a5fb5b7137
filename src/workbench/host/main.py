"""The life of a host: clean up after dead ones, start the engine, serve, leave nothing behind."""

from __future__ import annotations

import asyncio
import logging
import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace

from workbench import __version__
from workbench.contracts.engine import Engine
from workbench.data_folder import DataFolder, RunFolder
from workbench.engines.options import EngineOptions
from workbench.engines.registry import make_engine
from workbench.errors import Conflict, IsolationTooWeak, WorkbenchError
from workbench.guest_trees import remove_tree
from workbench.host.cells.snapshots import SnapshotPolicy
from workbench.host.guardian import Guardian
from workbench.host.server import HostServer
from workbench.host.service import HostService
from workbench.host.sweep import sweep_all
from workbench.images.additions import ChosenImage
from workbench.kernels.launcher import JupyterLauncher
from workbench.model.capability import Level, shortfall
from workbench.model.ids import new_host_id
from workbench.model.image import Image
from workbench.runtimes.loading import load_runtimes
from workbench.settings import Settings

_log = logging.getLogger(__name__)


async def run_host(settings: Settings, ready: Callable[[RunFolder], None], version: str = __version__) -> None:
    """Serve until told to leave.

    Raises:
        Conflict: another host is active in this data folder.
        IsolationTooWeak: the machine gives less than the settings insist on; the step is named.
        NotFound: the image is not built.
        InvalidRequest: what the folder of runtimes has is no description of one.
    """
    # First of all: whoever ends us while we start gets the same clean end.
    leave = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, leave.set)
    data = DataFolder(settings.data_dir)
    data.make()
    active = data.become_active()
    if active is None:
        raise Conflict(f"a host is active in {settings.data_dir}; see `workbench host status`")
    sweep_all(data)
    run = data.run_folder(new_host_id())
    # Before anything is made that it would have to clean up.
    guardian = Guardian(data, run.host)
    run.path.mkdir(mode=0o700)
    lock = run.lock()
    assert lock is not None
    try:
        await _serve(settings, data, run, _Leaving(leave, active), ready, version)
    finally:
        remove_tree(run.path)
        guardian.dismiss()
        os.close(lock)


@dataclass(frozen=True, slots=True)
class _Leaving:
    """What ends a host: someone's wish, and the lock that lets a successor become the active one."""

    asked: asyncio.Event
    active: int


async def _serve(
    settings: Settings,
    data: DataFolder,
    run: RunFolder,
    leaving: _Leaving,
    ready: Callable[[RunFolder], None],
    version: str,
) -> None:
    _raise_descriptor_limit()
    runtimes = load_runtimes(settings.runtimes_dir)

    def image() -> Image:
        found = ChosenImage(settings.data_dir, settings.images_dir).find()
        return found if settings.preload else replace(found, preload=())

    engine = make_engine(
        settings.engine,
        EngineOptions(
            image=image(),
            run_dir=run.path,
            files_root=data.files,
            packages_root=data.packages,
            group_name=run.group_name,
            pool_size=settings.pool_size,
        ),
    )
    try:
        if not await _started(engine, leaving.asked):
            return
        insist(settings.min_level, engine)
        service = HostService(
            engine=engine,
            data=data,
            run=run,
            level=settings.min_level,
            spool_max_bytes=settings.spool_max_mib * 2**20,
            limits_by=_limits_by(engine),
            find_image=image,
            launcher=JupyterLauncher(run.path / "kernels"),
            cell_limit_max_s=settings.cell_limit_max_s,
            policy=SnapshotPolicy(kept=settings.snapshots_kept),
            runtimes=runtimes,
        )
        server = HostServer(service, data, run, leaving.asked, version)
        await server.open()
        try:
            ready(run)
            await _until_asked_to_leave(server, service, leaving)
        finally:
            await server.close()
            await service.aclose()
    finally:
        await engine.aclose()


async def _started(engine: Engine, asked_to_leave: asyncio.Event) -> bool:
    """Start the engine, unless someone wants us gone before it has."""
    starting = asyncio.create_task(engine.start())
    leave = asyncio.create_task(asked_to_leave.wait())
    await asyncio.wait([starting, leave], return_when=asyncio.FIRST_COMPLETED)
    leave.cancel()
    if not starting.done():
        starting.cancel()
        await asyncio.wait([starting])
        return False
    await starting
    return True


def insist(level: Level, engine: Engine) -> None:
    """Refuse an engine that promises less than the settings ask for.

    Raises:
        IsolationTooWeak: with the first promise that falls short.
    """
    short = shortfall(level, engine.capabilities)
    if short is not None:
        raise IsolationTooWeak(
            f"WORKBENCH_MIN_LEVEL is {level.value}, and here {short.barrier.value} is {short.grade.value} "
            f"({short.by}); `workbench doctor` says what to do, or choose a lower level",
            {"step": short.barrier, "level": level},
        )


async def _until_asked_to_leave(server: HostServer, service: HostService, leaving: _Leaving) -> None:
    leave = asyncio.create_task(leaving.asked.wait())
    hand_over = asyncio.create_task(server.hand_over.wait())
    try:
        await asyncio.wait([leave, hand_over], return_when=asyncio.FIRST_COMPLETED)
        # The next host can start now, while we still serve what we have.
        os.close(leaving.active)
        if not leave.done():
            idle = asyncio.create_task(service.idle.wait())
            await asyncio.wait([leave, idle], return_when=asyncio.FIRST_COMPLETED)
            idle.cancel()
    finally:
        leave.cancel()
        hand_over.cancel()


def _limits_by(engine: Engine) -> str:
    by = {held.by for held in engine.capabilities if held.barrier in ("memory", "processes")}
    return " and ".join(sorted(by))


def _raise_descriptor_limit() -> None:
    """Each sandbox costs the host a handful of descriptors."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def main(settings: Settings, tell: Callable[[str], None], version: str = __version__) -> int:
    """Entry point of `workbench host run`: an exit code, and one line for each thing that a person should know."""
    logging.basicConfig(
        level=settings.log_level.upper(), stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )

    def ready(run: RunFolder) -> None:
        tell(f"host {run.host} is ready in {settings.data_dir}")

    try:
        asyncio.run(run_host(settings, ready, version))
    except WorkbenchError as problem:
        tell(f"error: {problem.message}")
        return 1
    return 0
