"""Has a snapshot of a kernel write its variables into a file of its sandbox, and end."""

from __future__ import annotations

import asyncio
import contextlib
import signal

import msgspec

from workbench.contracts.engine import Process, Sandbox
from workbench.contracts.kernel import Carried
from workbench.errors import InvalidRequest, KernelUnavailable
from workbench.kernels import events
from workbench.model.ids import new_process_id
from workbench.model.process import ProcessSpec, Stream

# Objects run code of the agent's while they are packed.
_PACK_S = 120.0
_END_S = 5.0
# Ten thousand names with their reasons.
_MOST_REPORT = 8 * 1024 * 1024


async def pack(sandbox: Sandbox, snapshot: str, path: str) -> Carried:
    """As the launcher's contract says."""
    order = msgspec.json.encode({"pack": path})
    spec = ProcessSpec(id=new_process_id(), entry="kernel", payload=order, snapshot=snapshot)
    try:
        process = await sandbox.start(spec)
    except InvalidRequest as problem:
        raise KernelUnavailable(f"the snapshot cannot be used: {problem.message}") from problem
    try:
        async with asyncio.timeout(_PACK_S):
            report = await _report(process)
            end = await process.wait()
    except TimeoutError:
        raise KernelUnavailable(f"the variables could not be packed in {_PACK_S:.0f} s") from None
    finally:
        await process.signal(signal.SIGKILL)
        # What lives longer is stuck in the system, and ends with its sandbox.
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_END_S):
                await process.wait()
    if end.code != 0:
        raise KernelUnavailable("the process that packed the variables was ended; they may need too much memory")
    return events.carried(report)


async def _report(process: Process) -> bytes:
    said = b""
    async for chunk in process.output():
        if chunk.stream is Stream.STDOUT and len(said) < _MOST_REPORT:
            said += chunk.data
    return said
