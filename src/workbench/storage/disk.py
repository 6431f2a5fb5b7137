"""Mounts as folders of the data folder."""

from __future__ import annotations

import asyncio
import os

from workbench.data_folder import DataFolder
from workbench.errors import Conflict, StoreUnavailable
from workbench.guest_trees import remove_tree
from workbench.model.ids import MountId


class DiskMountStore:
    """A MountStore on the disk of the host."""

    def __init__(self, data: DataFolder) -> None:
        self._data = data

    async def remove(self, mount: MountId) -> None:
        """As the contract has it."""
        # In a thread: as large and as deep as a guest liked to make it.
        await asyncio.to_thread(self._remove, mount)

    def _remove(self, mount: MountId) -> None:
        folder = self._data.files / mount
        if not self._data.mounts.is_dir():
            return
        lock = self._data.use_mount(mount)
        if lock is None:
            raise Conflict(f"the files of {mount} are in use by a sandbox: close that first", {"mount": mount})
        try:
            if not remove_tree(folder):
                raise StoreUnavailable(f"the files in {folder} could not all be removed; remove them by hand")
            # While it is held: whoever waits for it sees that the name now means another file, or none.
            self._data.mount_lock(mount).unlink(missing_ok=True)
        finally:
            os.close(lock)
