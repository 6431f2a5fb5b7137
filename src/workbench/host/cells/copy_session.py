"""One session's files and variables into the sandbox of another."""

from __future__ import annotations

import asyncio
import contextlib
import secrets

from workbench.contracts.engine import Sandbox
from workbench.contracts.kernel import KernelLauncher
from workbench.errors import WorkbenchError
from workbench.host.cells.between import Between
from workbench.host.cells.copying import copy_files
from workbench.model.ids import new_process_id
from workbench.model.process import ProcessSpec
from workbench.wire import kernels as wire

_FILES_S = 600.0
_REMOVE_S = 10.0
_CUT_OFF = "it was packed, and did not arrive"


async def copy_session(
    source: tuple[Sandbox, Between], target: tuple[Sandbox, Between], launcher: KernelLauncher, wait_s: float
) -> wire.CopyReport:
    """The target has a kernel that nothing ran in. The source's goes on as it was: a copy of it packs its variables.

    Raises:
        Conflict: the source's memory cannot be copied.
        KernelUnavailable: one of the two has no kernel, or no time for this.
        SandboxUnavailable, QuotaExceeded: the files could not be copied.
    """
    sandbox, between = source
    target[1].check_memory("taking up of variables")
    snapshot = await between.copy(wait_s)
    path = f"/tmp/.carried-{secrets.token_hex(8)}"
    try:
        packed = await launcher.pack(sandbox, snapshot.name, path)
        note = await copy_files(sandbox, target[0], limit_s=_FILES_S)
    finally:
        await sandbox.discard(snapshot.name)
        await _remove(sandbox, path)
    arrived = await target[1].unpack(path, packed.working_folder, wait_s)
    missing = set(packed.names) - set(arrived.names) - set(arrived.not_carried)
    return wire.CopyReport(
        carried=tuple(sorted(arrived.names)),
        not_carried={**dict.fromkeys(sorted(missing), _CUT_OFF), **arrived.not_carried, **packed.not_carried},
        files_note=note,
    )


async def _remove(sandbox: Sandbox, path: str) -> None:
    # What cannot be removed lies in /tmp, and goes with the sandbox.
    with contextlib.suppress(WorkbenchError, TimeoutError):
        async with asyncio.timeout(_REMOVE_S):
            process = await sandbox.start(ProcessSpec(id=new_process_id(), argv=("/bin/rm", "-f", "--", path)))
            await process.wait()
