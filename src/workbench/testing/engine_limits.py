"""What the engine contract says about promises and limits: declared truly, held as declared, named when met."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from workbench.contracts.engine import Engine, OutputChunk, Sandbox
from workbench.errors import QuotaExceeded
from workbench.model.capability import ISOLATION, Barrier, Grade
from workbench.model.process import Limit, ProcessSpec
from workbench.model.tier import MEDIUM, STANDARD
from workbench.testing.driving import PATIENCE_S, TINY, MakeSandbox, Reading, code, finish, program, run, shell

_MIB = 2**20
_HOLD = "held = bytearray(b'x') * ({mib} * 2**20)\nprint('held', flush=True)\nprint(len(held) + len(input()))"
# The children let go of the output, which would else be open for as long as they sleep.
_FORKS = """\
import os, time
for _ in range({count}):
    if os.fork() == 0:
        os.closerange(0, 3)
        time.sleep(1000)
print("forked")
"""
# Takes more than TINY has and keeps it until told: a watchdog may come to look only after a while.
FILL = """\
import time
held = []
for _ in range(40):
    held.append(bytearray(b"x") * (8 * 2**20))
    time.sleep(0.01)
print("full", flush=True)
input()
"""
# Real blocks, of which none is written.
_KEEP_FILES = """\
import os
file = os.open(os.environ.get("WORKBENCH_FILES", "/mnt/files") + "/large", os.O_CREAT | os.O_WRONLY)
os.posix_fallocate(file, 0, 300 * 2**20)
"""
_DELETE_FILES = "import os\nos.unlink(os.environ.get('WORKBENCH_FILES', '/mnt/files') + '/large')"
# Several looks of an engine that looks at files.
_LOOKED_S = 1.0
_OPENS = "files = [open('/dev/null') for _ in range({count})]"


def grade(engine: Engine, barrier: Barrier) -> Grade:
    """How far `engine` says it goes."""
    return next(capability.grade for capability in engine.capabilities if capability.barrier is barrier)


class LimitsContract:
    """Part of EngineContract, which has the fixtures."""

    async def test_every_barrier_is_declared_exactly_once(self, engine: Engine) -> None:
        """With what it is held by."""
        declared = [capability.barrier for capability in engine.capabilities]
        assert sorted(declared) == sorted(Barrier)
        assert all(capability.by for capability in engine.capabilities)

    async def test_a_sandbox_describes_itself_truly(self, engine: Engine, make_sandbox: MakeSandbox) -> None:
        """It is isolated only if every wall is up, and limited only if something limits it."""
        described = (await make_sandbox(tier=MEDIUM)).description
        walls = all(grade(engine, barrier) is Grade.ENFORCED for barrier in ISOLATION)
        assert (described.engine, described.tier) == (engine.name, "medium")
        assert described.isolated == walls
        assert bool(described.warning) != walls
        assert (described.limits_by == "nothing") == (grade(engine, Barrier.MEMORY) is Grade.ABSENT)

    async def test_usage_has_the_numbers_of_what_runs(self, sandbox: Sandbox) -> None:
        """And they fall when it ends, but for the peak and the time spent."""
        before = await sandbox.usage()
        process = await sandbox.start(code(_HOLD.format(mib=100), stdin=True))
        async with Reading(process) as reading:
            await reading.until(b"held")
            during = await sandbox.usage()
            await process.write_stdin(b"\n")
            await reading.rest()
            await process.wait()
        after = await sandbox.usage()
        assert during.memory_bytes > before.memory_bytes + 90 * _MIB
        assert during.processes >= 1
        assert after.memory_bytes < during.memory_bytes - 90 * _MIB
        assert after.peak_memory_bytes >= during.memory_bytes - 10 * _MIB
        assert after.cpu_s >= during.cpu_s > 0

    async def test_changing_the_tier_keeps_what_is_in_memory(self, sandbox: Sandbox) -> None:
        """Up and down again, while a process runs."""
        process = await sandbox.start(code(_HOLD.format(mib=50), stdin=True))
        async with Reading(process) as reading:
            await reading.until(b"held")
            for tier in (MEDIUM, STANDARD):
                await sandbox.change_tier(tier)
                assert sandbox.description.tier == tier.name
            await process.write_stdin(b"\n")
            assert str(50 * _MIB).encode() in await reading.rest()

    async def test_a_tier_smaller_than_what_is_used_is_refused_with_both_numbers(
        self, engine: Engine, sandbox: Sandbox
    ) -> None:
        """And nothing changes: neither the process nor what it may still take."""
        process = await sandbox.start(code(_HOLD.format(mib=300), stdin=True))
        async with Reading(process) as reading:
            await reading.until(b"held")
            if grade(engine, Barrier.MEMORY) is Grade.ABSENT:
                await sandbox.change_tier(TINY)
            else:
                with pytest.raises(QuotaExceeded, match=r"\d+ MiB.* 256") as refusal:
                    await sandbox.change_tier(TINY)
                assert int(refusal.value.context["used_bytes"]) > 290 * _MIB
                assert sandbox.description.tier == "standard"
                assert await _scratch_takes(sandbox, 100)
            await process.write_stdin(b"\n")
            assert str(300 * _MIB).encode() in await reading.rest()

    async def test_a_tier_too_small_for_the_files_at_home_is_refused(self, engine: Engine, sandbox: Sandbox) -> None:
        """They are kept, and so is the room there was."""
        await run(sandbox, shell("head -c 50000000 /dev/zero > ~/large"))
        if grade(engine, Barrier.SCRATCH_DISK) is Grade.ABSENT:
            await sandbox.change_tier(TINY)
        else:
            with pytest.raises(QuotaExceeded, match=r"4[78] MiB.* 16 MiB") as refusal:
                await sandbox.change_tier(TINY)
            assert int(refusal.value.context["used_bytes"]) >= 50_000_000
            assert sandbox.description.tier == "standard"
            assert await _scratch_takes(sandbox, 100)
        assert (await run(sandbox, shell("wc -c < ~/large"))).stdout == b"50000000\n"

    async def test_running_out_of_memory_is_named(self, engine: Engine, make_sandbox: MakeSandbox) -> None:
        """Only the process that took it ends, and the next has room again."""
        sandbox = await make_sandbox(tier=TINY)
        process = await sandbox.start(code(FILL, stdin=True))
        if grade(engine, Barrier.MEMORY) is Grade.ABSENT:
            async with Reading(process) as reading:
                await reading.until(b"full\n")
            return
        done = await finish(process)
        assert Limit.MEMORY in done.exit.limits, done
        assert not done.exit.lost
        assert (await run(sandbox, program("/bin/echo", "next"))).exit.limits == ()

    async def test_too_many_processes_is_named(self, engine: Engine, make_sandbox: MakeSandbox) -> None:
        """The process that forked learns it from the kernel, the caller from the result."""
        sandbox = await make_sandbox(tier=TINY)
        done = await run(sandbox, code(_FORKS.format(count=60)))
        if grade(engine, Barrier.PROCESSES) is Grade.ABSENT:
            assert done.stdout == b"forked\n"
            return
        assert Limit.PROCESSES in done.exit.limits, done

    async def test_a_start_at_the_process_limit_is_refused_as_a_quota(
        self, engine: Engine, make_sandbox: MakeSandbox
    ) -> None:
        """Nothing ran, so it is an error and not a result."""
        sandbox = await make_sandbox(tier=TINY)
        if grade(engine, Barrier.PROCESSES) is Grade.ABSENT:
            await asyncio.gather(*(sandbox.start(program("/bin/sleep", "1000")) for _ in range(45)))
            return
        sleepers = (sandbox.start(program("/bin/sleep", "1000")) for _ in range(TINY.processes + 5))
        with pytest.raises(QuotaExceeded, match="too many processes"):
            await asyncio.gather(*sleepers)

    @pytest.mark.parametrize("folder", ["~", "$TMPDIR"])
    async def test_a_full_disk_is_named(self, engine: Engine, make_sandbox: MakeSandbox, folder: str) -> None:
        """Whichever of its folders it was."""
        sandbox = await make_sandbox(tier=TINY)
        done = await run(sandbox, shell(f"head -c 20000000 /dev/zero > {folder}/large"))
        if grade(engine, Barrier.SCRATCH_DISK) is Grade.ABSENT:
            assert (done.exit.code, done.exit.limits) == (0, ())
        else:
            assert Limit.DISK in done.exit.limits, done

    async def test_files_over_their_quota_are_told_and_the_sandbox_lives(
        self, engine: Engine, make_sandbox: MakeSandbox
    ) -> None:
        """What runs can be interrupted, delete them, and all is as before."""
        sandbox = await make_sandbox(tier=replace(STANDARD, files_bytes=280 * _MIB))
        assert await sandbox.over_quota() is None
        assert (await run(sandbox, code(_KEEP_FILES))).exit.code == 0
        if grade(engine, Barrier.FILES_DISK) is Grade.ABSENT:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(sandbox.wait_over_quota(), _LOOKED_S)
            assert await sandbox.over_quota() is None
            return
        async with asyncio.timeout(PATIENCE_S):
            told = await sandbox.wait_over_quota()
        assert told.bytes >= 300 * _MIB
        assert (told.quota.bytes, told.quota.files) == (280 * _MIB, STANDARD.files_inodes)
        assert (await sandbox.over_quota()) == told
        assert (await run(sandbox, code(_DELETE_FILES))).exit.code == 0
        assert await sandbox.over_quota() is None

    async def test_too_many_open_files_is_named(self, sandbox: Sandbox) -> None:
        """Whoever set the cap: here the process itself, lower than the tier's."""
        lower = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))\n"
        done = await run(sandbox, code(lower + _OPENS.format(count=100)))
        assert (done.exit.code, done.exit.limits) == (1, (Limit.OPEN_FILES,))

    async def test_the_cap_on_open_files_is_the_tiers(self, engine: Engine, sandbox: Sandbox) -> None:
        """And a process cannot raise it."""
        done = await run(sandbox, code(_OPENS.format(count=STANDARD.open_files)))
        if grade(engine, Barrier.OPEN_FILES) is Grade.ABSENT:
            assert done.exit.code == 0 or Limit.OPEN_FILES in done.exit.limits
            return
        assert Limit.OPEN_FILES in done.exit.limits
        raise_it = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (8192, 8192))"
        assert (await run(sandbox, code(raise_it))).exit.code == 1

    @pytest.mark.parametrize("words", ["Too many open files", "No space left on device", "MemoryError"])
    async def test_words_of_a_limit_mean_nothing_if_the_process_succeeds(self, sandbox: Sandbox, words: str) -> None:
        """A program may well speak of such things."""
        assert (await run(sandbox, shell(f"echo '{words}' >&2"))).exit.limits == ()

    async def test_words_of_a_limit_are_found_whether_or_not_anyone_reads(self, sandbox: Sandbox) -> None:
        """The end is complete when it is told, and nothing of the output is missing for it."""
        process = await sandbox.start(shell("echo before; echo 'x: No space left on device' >&2; exit 1"))
        assert (await process.wait()).limits == (Limit.DISK,)
        done = await finish(process)
        assert (done.stdout, done.stderr) == (b"before\n", b"x: No space left on device\n")

    async def test_a_reader_that_waits_gets_what_was_looked_at_for_limits(self, sandbox: Sandbox) -> None:
        """While a child keeps the streams open, so that nothing else would wake the reader."""
        process = await sandbox.start(shell("sleep 1000 & echo started; read x; echo failed >&2; exit 1", stdin=True))
        chunks = process.output()
        async with asyncio.timeout(PATIENCE_S):
            assert (await anext(chunks)).data == b"started\n"
            waiting = asyncio.ensure_future(_next(chunks))
            await process.write_stdin(b"\n")
            assert (await waiting).data == b"failed\n"


async def _next(chunks: AsyncIterator[OutputChunk]) -> OutputChunk:
    return await anext(chunks)


async def _scratch_takes(sandbox: Sandbox, mib: int) -> bool:
    spec: ProcessSpec = shell(f"head -c {mib * _MIB} /dev/zero > ~/room; wc -c < ~/room; rm ~/room")
    return int((await run(sandbox, spec)).stdout) == mib * _MIB
