"""Running attacks: in a sandbox, through the engine's contract; and outside, as a control."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import workbench_guest
from workbench.contracts.engine import Process, Sandbox
from workbench.doctor.rows import Result
from workbench.errors import WorkbenchError
from workbench.model.ids import new_process_id
from workbench.model.image import Image
from workbench.model.process import Limit, ProcessSpec, Stream
from workbench_guest.attacks.registry import Given, Outside

# Far above what all attacks of one run need; a run that hangs must still end.
RUN_TIMEOUT_S = 240.0
_LAST_WORDS_S = 1.0
_GUEST_ROOT = str(Path(workbench_guest.__file__).resolve().parent.parent)
_BOOT = "import sys; sys.path.insert(0, sys.argv[1]); from workbench_guest.attacks.control import main; main()"


@dataclass(frozen=True, slots=True, kw_only=True)
class Order:
    """One attack to run, and with what."""

    name: str
    given: Given


def _payload(orders: list[Order]) -> bytes:
    return json.dumps([{"name": order.name, "given": asdict(order.given)} for order in orders]).encode()


def _results(output: bytes) -> dict[str, Result]:
    """By name. The last one counts where an attack was ordered twice; a line that was cut off is no result."""
    found = {}
    for line in output.decode(errors="replace").splitlines():
        with contextlib.suppress(json.JSONDecodeError):
            fields = json.loads(line)
            name = str(fields.pop("name"))
            found[name] = Result(**fields)
    return found


async def run_inside(sandbox: Sandbox, orders: list[Order]) -> dict[str, Result]:
    """In a fork of the sandbox's warm interpreter. An attack that ended the sandbox, or came after, is lost."""
    said = {Stream.STDOUT: b"", Stream.STDERR: b""}
    try:
        async with asyncio.timeout(RUN_TIMEOUT_S):
            process = await sandbox.start(
                ProcessSpec(id=new_process_id(), entry="attack", payload=_payload(orders), cwd="/tmp")
            )
            reading = asyncio.create_task(_read(process, said))
            try:
                ended = await process.wait()
                # What an attack left running keeps the streams open; it ends with the sandbox.
                await asyncio.wait([reading], timeout=_LAST_WORDS_S)
            finally:
                reading.cancel()
                await asyncio.wait([reading])
    except (TimeoutError, WorkbenchError) as problem:
        missing = Result(end="broken", detail=f"the attacks did not run: {problem or 'out of time'}")
    else:
        if ended.lost:
            missing = Result(end="lost", detail=f"the sandbox ended: {ended.reason}")
        elif Limit.MEMORY in ended.limits:
            missing = Result(end="ended", detail="the process was ended: out of memory")
        else:
            missing = Result(end="broken", detail=f"no result: {_last_line(said[Stream.STDERR])} ({ended})")
    results = _results(said[Stream.STDOUT])
    return {order.name: results.get(order.name, missing) for order in orders}


async def _read(process: Process, said: dict[Stream, bytes]) -> None:
    async for chunk in process.output():
        said[chunk.stream] += chunk.data


def _last_line(text: bytes) -> str:
    return (text.decode(errors="replace").strip().splitlines() or ["no message"])[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlSettings:
    """What a control process finds: variables, and a descriptor that somebody left open."""

    image: Image
    variables: Mapping[str, str]
    left_open: Path


async def run_outside(settings: ControlSettings, kind: Outside, orders: list[Order]) -> dict[str, Result]:
    """In a plain process of the image's interpreter, with the same guest package. Never raises for what it does."""
    left = os.open(settings.left_open, os.O_RDONLY | os.O_CLOEXEC)
    try:
        process = await asyncio.create_subprocess_exec(
            settings.image.python, "-I", "-B", "-c", _BOOT, _GUEST_ROOT, kind.value,
            env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", **settings.variables}, cwd="/", pass_fds=(left,),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
            start_new_session=True)  # fmt: skip
    finally:
        os.close(left)
    try:
        async with asyncio.timeout(RUN_TIMEOUT_S):
            output, complaint = await process.communicate(_payload(orders))
    except TimeoutError:
        output, complaint = b"", b"out of time"
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    results = _results(output)
    missing = Result(end="broken", detail=f"the control did not run: {_last_line(complaint)}")
    return {order.name: results.get(order.name, missing) for order in orders}
