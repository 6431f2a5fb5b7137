"""A slot: a sandbox whose walls are up and that belongs to nobody yet. Made by a zygote, claimed by the engine."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import signal
from dataclasses import dataclass

from workbench.contracts.engine import HeadStart
from workbench.engines.namespace.channel import ChannelClosed, HostChannel
from workbench.engines.namespace.limits.keeper import LimitGroup, LimitKeeper
from workbench.engines.namespace.zygote import Zygote
from workbench.engines.pidfd import exited, has_exited
from workbench.errors import SandboxUnavailable
from workbench.model.tier import STANDARD
from workbench_guest.messages import Failed, Forget, SlotPlan, SlotReady

# A slot is ready in about 10 ms; an emulated machine under load needs hundreds of times that.
PREPARE_TIMEOUT_S = 60.0
# What a kill has not ended by then is stuck in the kernel.
END_TIMEOUT_S = 20.0
_REMOVE_TRIES, _REMOVE_PAUSE_S = 200, 0.02
# Above every range that distributions hand out to users, services and containers.
_UID_BASE, _UID_COUNT = 1_900_000_000, 1 << 24
# Core dumps: 1 and not 0, which a kernel that pipes them into a program of the host's would not heed. Signals and
# messages in queues are counted per user, whom an ordinary user's sandboxes share.
_RLIMITS = {
    # Descriptors in flight are counted per user against the sender's own limit: pid 1 must be able to pass some on
    # when those inside, or in another sandbox of an ordinary user, have as many under way as they may.
    "RLIMIT_NOFILE": 2 * STANDARD.open_files,
    "RLIMIT_CORE": 1,
    "RLIMIT_RTPRIO": 0,
    "RLIMIT_NICE": 0,
    "RLIMIT_SIGPENDING": 1024,
    "RLIMIT_MSGQUEUE": 1 << 20,
}


@dataclass(slots=True)
class Slot:
    """Owned by the pool, then by a sandbox; `end` frees everything in any state."""

    name: str
    pid: int
    pidfd: int
    channel: HostChannel
    group: LimitGroup
    zygote: Zygote
    descriptors: list[int]
    """its user namespace, scratch, shm, and the socket that listens for calls"""
    steps_ms: dict[str, float]
    outside_uid: int | None
    killed: bool = False
    head_start: HeadStart | None = None
    """what has begun in it before anybody has it"""

    async def end(self) -> None:
        """Kill pid 1, and with it all inside; reap it; free its group and its mounts. May be called twice."""
        if self.pidfd < 0:
            return
        self.kill()
        if (begun := self.take_head_start()) is not None:
            begun.close()
        pidfd, self.pidfd = self.pidfd, -1
        try:
            await end_process(self.pid, pidfd)
        finally:
            os.close(pidfd)
            self.channel.close()
            self.group.count_folders([])
            for descriptor in self.descriptors:
                os.close(descriptor)
            self.descriptors = []
            await remove_group(self.group)
            for zygote in filter(None, (self.zygote, self.zygote.grown_from)):
                if zygote.alive:
                    with contextlib.suppress(SandboxUnavailable):
                        await zygote.ask(Forget(slot=self.name))
                        break

    def take_head_start(self) -> HeadStart | None:
        """Once; it is the caller's to close."""
        begun, self.head_start = self.head_start, None
        return begun

    @property
    def calls(self) -> int:
        """What listens for calls from inside."""
        return self.descriptors[3]

    @property
    def usable(self) -> bool:
        """Whether pid 1 and the zygote that made it are alive."""
        return self.pidfd >= 0 and not has_exited(self.pidfd) and self.zygote.check()

    def kill(self) -> None:
        """Only the signal; the owner still calls `end`."""
        if self.pidfd >= 0:
            self.killed = True
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self.pidfd, signal.SIGKILL)
            # After the signal, which then is the first thing that it sees. What is frozen on v1 does not die.
            with contextlib.suppress(OSError):
                self.group.thaw()

    def freeze(self) -> bool:
        """Whether nothing inside runs any more; never once it was killed.

        Raises:
            OSError: it cannot be done here.
        """
        return not self.killed and self.group.freeze()


async def prepare(zygote: Zygote, keeper: LimitKeeper) -> Slot:
    """A new slot, at the standard tier's sizes.

    Raises:
        SandboxUnavailable: a step failed, `context["step"]`; nothing is left of it.
    """
    name = f"s-{secrets.token_hex(6)}"
    try:
        group = keeper.group(name)
    except OSError as problem:
        raise SandboxUnavailable(f"no control group: {problem}", {"step": "control group"}) from problem
    channel, theirs = HostChannel.pair()
    try:
        outside_uid = _UID_BASE + secrets.randbelow(_UID_COUNT) if os.geteuid() == 0 else None
        pid = await _clone(zygote, group, name, outside_uid, theirs.fileno())
    except BaseException:
        channel.close()
        await remove_group(group)
        raise
    finally:
        theirs.close()
    group.adopt(pid)
    zygote.clones += 1
    slot = Slot(name, pid, os.pidfd_open(pid), channel, group, zygote, [], {}, outside_uid)
    try:
        if group.join != "none":
            # While it builds its walls: files of a control group do not wait for it.
            group.apply(STANDARD)
        await _until_ready(slot)
        if group.join == "none":
            group.apply(STANDARD)
    except BaseException as problem:
        await asyncio.shield(slot.end())
        if isinstance(problem, OSError):
            raise SandboxUnavailable(f"limits cannot be set: {problem}", {"step": "limits"}) from problem
        raise
    return slot


async def _clone(zygote: Zygote, group: LimitGroup, name: str, outside_uid: int | None, control: int) -> int:
    joins: list[int] = []
    try:
        joins = group.open_to_join()
        plan = SlotPlan(
            slot=name,
            outside_uid=outside_uid,
            join=group.join,
            scratch_bytes=STANDARD.scratch_bytes,
            scratch_inodes=STANDARD.scratch_inodes,
            shm_bytes=STANDARD.shm_bytes,
            rlimits={**_RLIMITS, **group.rlimits},
            open_files=STANDARD.open_files,
            cpus=group.cpus,
        )
        done = await zygote.ask(plan, (control, *joins))
    except OSError as problem:
        raise SandboxUnavailable(f"cannot join its control group: {problem}", {"step": "control group"}) from problem
    finally:
        for descriptor in joins:
            os.close(descriptor)
    assert done.pid is not None
    return done.pid


async def _until_ready(slot: Slot) -> None:
    try:
        async with asyncio.timeout(PREPARE_TIMEOUT_S):
            answer, slot.descriptors = await slot.channel.receive()
    except (TimeoutError, ChannelClosed) as problem:
        raise SandboxUnavailable(
            f"the sandbox did not come up: {problem or 'no answer'}", {"step": "clone"}
        ) from problem
    if isinstance(answer, Failed):
        raise SandboxUnavailable(f"{answer.step}: {answer.error}", {"step": answer.step})
    assert isinstance(answer, SlotReady)
    slot.steps_ms = answer.steps_ms
    slot.group.count_folders(slot.descriptors[1:3])


async def end_process(pid: int, pidfd: int) -> None:
    """Kill a child of ours and reap it; waits, within bounds, until the kernel has torn its namespace down."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    await exited(pidfd, within_s=END_TIMEOUT_S)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, os.WNOHANG)  # noqa: ASYNC222  never waits


async def remove_group(group: LimitGroup) -> None:
    """The last process may still be on its way out of the group for a moment."""
    for _ in range(_REMOVE_TRIES):
        if group.remove():
            return
        await asyncio.sleep(_REMOVE_PAUSE_S)
