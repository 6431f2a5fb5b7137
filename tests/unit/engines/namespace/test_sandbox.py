"""A sandbox whose pid 1 lies: nobody is left waiting for it."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from workbench.contracts.engine import SandboxSpec
from workbench.engines.namespace import sandbox as sandbox_module
from workbench.engines.namespace.channel import HostChannel
from workbench.engines.namespace.limits.rlimits import RlimitGroup
from workbench.engines.namespace.quota import FilesQuota
from workbench.engines.namespace.sandbox import NamespaceSandbox
from workbench.engines.namespace.slot import Slot
from workbench.engines.namespace.zygote import Zygote
from workbench.model.ids import new_process_id, new_sandbox_id
from workbench.model.process import ProcessExit, ProcessSpec
from workbench.model.tier import STANDARD, Tier
from workbench_guest.messages import Exited, Message, Start, Started, decode, encode

_PATIENCE_S = 20.0


class _DeadZygote:
    alive = False
    grown_from = None


@dataclass
class Lying:
    """A sandbox, and the end of its socket that pid 1 would have."""

    sandbox: NamespaceSandbox
    pid_1: socket.socket

    def say(self, message: Message) -> None:
        self.pid_1.send(encode(message))

    async def started(self) -> tuple[str, asyncio.Future[ProcessExit]]:
        """A process that runs, as pid 1 says; and its end, to come."""
        process = new_process_id()
        starting = asyncio.ensure_future(self.sandbox.start(ProcessSpec(id=process, argv=("/bin/true",))))
        while not isinstance(decode(await asyncio.to_thread(self.pid_1.recv, 1 << 20)), Start):
            pass
        self.say(Started(process=process, pid=2))
        async with asyncio.timeout(_PATIENCE_S):
            return process, asyncio.ensure_future((await starting).wait())


@pytest.fixture
async def lying(tmp_path: Path) -> AsyncIterator[Lying]:
    channel, theirs = HostChannel.pair()
    child = os.posix_spawn("/bin/sleep", ["sleep", "1000"], {})
    slot = Slot("s", child, os.pidfd_open(child), channel, RlimitGroup("s", 0, {0: 0}),
                cast("Zygote", _DeadZygote()), [], {}, None)  # fmt: skip

    async def resize(_slot: Slot, _tier: Tier) -> None:
        pass

    async def look_at_files(_sandbox: NamespaceSandbox) -> None:
        pass

    sandbox = NamespaceSandbox(
        spec=SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=tmp_path),
        slot=slot,
        limits_by="nothing",
        base_env={},
        cpus=1,
        quota=FilesQuota(),
        resize=resize,
        look_at_files=look_at_files,
        on_gone=lambda _: None,
    )
    await sandbox.open()
    with theirs:
        yield Lying(sandbox, theirs)
    async with asyncio.timeout(_PATIENCE_S):
        await sandbox.aclose()


def _exit(process: str, *, status: int = 0, cpu_s: float = 0.0, peak_bytes: int = 0) -> Exited:
    return Exited(process=process, status=status, cpu_s=cpu_s, peak_bytes=peak_bytes, scratch_free_bytes=2**30,
                  scratch_free_inodes=9)  # fmt: skip


@pytest.mark.parametrize(
    "numbers",
    [
        {"status": 2**70},
        {"status": -(2**70)},
        {"peak_bytes": 2**70},
        {"peak_bytes": -1},
        {"cpu_s": float("inf")},
        {"cpu_s": float("nan")},
    ],
)
async def test_a_number_that_cannot_be_ends_the_sandbox_and_with_it_the_process(
    lying: Lying, numbers: dict[str, int]
) -> None:
    process, ending = await lying.started()
    lying.say(_exit(process, **numbers))
    async with asyncio.timeout(_PATIENCE_S):
        assert (await ending).lost
        assert await lying.sandbox.wait_gone()


async def test_a_true_end_is_told_and_the_sandbox_lives_on(lying: Lying) -> None:
    process, ending = await lying.started()
    lying.say(_exit(process, status=256, peak_bytes=7))
    async with asyncio.timeout(_PATIENCE_S):
        how = await ending
    assert (how.code, how.peak_bytes) == (1, 7)
    await lying.started()


async def test_closing_does_not_wait_for_a_pid_1_that_a_kill_does_not_end(
    lying: Lying, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stuck in the kernel, as on a disk that does not answer: here its socket stays open."""
    _, ending = await lying.started()
    monkeypatch.setattr(sandbox_module, "END_TIMEOUT_S", 0.05)
    async with asyncio.timeout(_PATIENCE_S):
        await lying.sandbox.aclose()
        assert (await ending).lost
