"""Settings in, a workbench out: the only module that knows the adapters of the core."""

from __future__ import annotations

import asyncio
import contextlib
import datetime
from collections.abc import AsyncIterator, Mapping

from workbench.core.workbench import Workbench
from workbench.data_folder import DataFolder
from workbench.host_client.adapter import HostClient
from workbench.settings import Settings
from workbench.storage.disk import DiskMountStore
from workbench.storage.sqlite import SqliteSessionStore


class SystemClock:
    """The machine's."""

    def now_iso(self) -> str:
        """As the contract has it."""
        return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")

    async def pause(self, seconds: float) -> None:
        """As the contract has it."""
        await asyncio.sleep(seconds)


@contextlib.asynccontextmanager
async def open_workbench(settings: Settings, environ: Mapping[str, str]) -> AsyncIterator[Workbench]:
    """A workbench on the records and hosts of the data folder; nothing is opened or started before it is needed.

    `environ` is what a host is started with, as far as a host may have it.
    """
    data = DataFolder(settings.data_dir)
    host = HostClient(settings, environ)
    store = SqliteSessionStore(data.records)
    try:
        yield Workbench(host=host, sessions=store, mounts=DiskMountStore(data), clock=SystemClock())
    finally:
        await host.aclose()
        await store.aclose()
