"""What the engine contract says about lifetimes: what ends what, what is told, and that nothing is left."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench.contracts.engine import Engine, Sandbox, SandboxSpec
from workbench.errors import SandboxUnavailable
from workbench.model.ids import new_sandbox_id
from workbench.model.tier import MEDIUM, STANDARD
from workbench.testing.driving import (
    PATIENCE_S,
    Finished,
    MakeSandbox,
    Reading,
    cancelled_after,
    code,
    eventually,
    finish,
    program,
    run,
    shell,
    still_works,
)

MakeEngine = Callable[[], Engine]


class LifetimesContract:
    """Part of EngineContract, which has the fixtures."""

    async def test_closing_ends_what_runs_as_lost_with_a_reason(self, sandbox: Sandbox) -> None:
        """A result and not an error, with what was printed until then."""
        process = await sandbox.start(shell("echo printed; sleep 1000"))
        async with Reading(process) as reading:
            await reading.until(b"printed\n")
            await sandbox.aclose()
            assert await reading.rest() == b"printed\n"
        end = await process.wait()
        assert (end.code, end.lost, end.reason) == (None, True, "closed")

    async def test_output_that_nobody_read_is_kept_when_the_sandbox_closes(self, sandbox: Sandbox) -> None:
        """As much as its pipes held."""
        process = await sandbox.start(shell("echo printed; echo too >&2"))
        await process.wait()
        await sandbox.aclose()
        done = await finish(process)
        assert (done.stdout, done.stderr, done.exit.code) == (b"printed\n", b"too\n", 0)

    async def test_closing_may_be_done_twice_and_at_once(self, sandbox: Sandbox) -> None:
        """And leaves an ended process's result alone."""
        done = await run(sandbox, program("/bin/true"))
        await asyncio.gather(*(sandbox.aclose() for _ in range(3)))
        await sandbox.aclose()
        assert done.exit.code == 0

    async def test_a_closed_sandbox_takes_no_more_orders(self, sandbox: Sandbox) -> None:
        """Each is refused by the same error, and nothing ran."""
        await sandbox.aclose()
        for order in (sandbox.start(program("/bin/true")), sandbox.change_tier(MEDIUM), sandbox.usage()):
            with pytest.raises(SandboxUnavailable, match="gone"):
                await order
        assert sandbox.description.tier == "standard"

    async def test_everyone_who_waits_learns_that_it_is_gone(self, sandbox: Sandbox) -> None:
        """Before and after, with the reason."""
        waiting = [asyncio.ensure_future(sandbox.wait_gone()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting.pop().cancel()
        await sandbox.aclose()
        assert {*(await asyncio.gather(*waiting)), await sandbox.wait_gone()} == {"closed"}

    async def test_a_daemon_ends_with_its_sandbox(self, sandbox: Sandbox) -> None:
        """It left its group, its session and its parent, but it holds the output: that ends only if it does."""
        process = await sandbox.start(shell("(setsid sh -c 'echo away; sleep 1000' &) ; exit 0"))
        async with Reading(process) as reading:
            await reading.until(b"away\n")
            assert (await process.wait()).code == 0
            await sandbox.aclose()
            assert await reading.rest() == b"away\n"

    async def test_a_process_that_ignores_every_request_to_end_is_ended(self, sandbox: Sandbox) -> None:
        """Closing does not ask."""
        process = await sandbox.start(shell("trap '' TERM INT HUP QUIT; echo deaf; while :; do sleep 1; done"))
        async with Reading(process) as reading:
            await reading.until(b"deaf\n")
            await sandbox.aclose()
            await reading.rest()
        assert (await process.wait()).lost

    async def test_an_agent_that_kills_all_it_can_keeps_its_sandbox(self, sandbox: Sandbox) -> None:
        """The interpreter that waits for the next entry is its to kill as well."""
        alone = await run(sandbox, program("/bin/readlink", "/proc/self/ns/pid"))
        separate = alone.stdout.decode().strip() not in ("", os.readlink("/proc/self/ns/pid"))
        assert separate or not sandbox.description.isolated
        # Never to everyone where everyone includes this machine's other processes.
        done = await run(sandbox, shell("kill -9 -1" if separate else "kill -9 0"))
        assert done.exit.signal == 9 or separate

        async def quiet() -> bool:
            return (await sandbox.usage()).processes <= 1

        # A kill returns before its target is gone; what starts in between may still be one of them.
        await eventually(quiet, "all that was killed is gone")
        assert await still_works(sandbox)

    async def test_a_start_that_is_cancelled_leaves_nothing_running(self, sandbox: Sandbox) -> None:
        """However far it came."""
        before = (await sandbox.usage()).processes
        open_before = _open_pipes()
        for turns in range(12):
            for spec in (program("/bin/sleep", "1000"), code("import time\ntime.sleep(1000)")):
                started = await cancelled_after(turns, sandbox.start(spec))
                if started is not None:
                    await started.signal(9)
                    await finish(started)

        async def quiet() -> bool:
            return (await sandbox.usage()).processes <= before

        await eventually(quiet, "no more processes than before the cancelled starts")
        assert await still_works(sandbox)
        assert _open_pipes() == open_before

    async def test_a_start_while_the_sandbox_closes_ends_one_way_or_the_other(self, make_sandbox: MakeSandbox) -> None:
        """Lost if it began, refused if not; never a wait without end."""
        for turns in (0, 1, 3, 10, 30):
            sandbox = await make_sandbox()
            specs = [code("print(1)") if n % 2 else program("/bin/sleep", "1000") for n in range(6)]
            starts = [asyncio.ensure_future(sandbox.start(spec)) for spec in specs]
            for _ in range(turns):
                await asyncio.sleep(0)
            await sandbox.aclose()
            async with asyncio.timeout(PATIENCE_S):
                for outcome in await asyncio.gather(*starts, return_exceptions=True):
                    if isinstance(outcome, BaseException):
                        assert isinstance(outcome, SandboxUnavailable), repr(outcome)
                    else:
                        done = await finish(outcome)
                        assert done.exit.lost or done.exit.code == 0

    async def test_a_sandbox_whose_making_is_cancelled_leaves_nothing(self, engine: Engine, files_root: Path) -> None:
        """However far it came, and the next one is as good as any."""
        files = files_root / "cancelled"
        files.mkdir()
        for turns in (*range(1, 20, 2), 30, 50, 80):
            spec = SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files)
            made = await cancelled_after(turns, engine.create(spec))
            if made is not None:
                await made.aclose()
        sandbox = await engine.create(SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files))
        assert await still_works(sandbox)
        await sandbox.aclose()

    async def test_twenty_sandboxes_work_at_once(self, make_sandbox: MakeSandbox) -> None:
        """Made, used and closed side by side."""

        async def life(number: int) -> Finished:
            sandbox = await make_sandbox()
            done = await run(sandbox, code(f"open('n', 'w').write('{number}')\nprint(open('n').read())"))
            await sandbox.aclose()
            return done

        done = await asyncio.gather(*(life(number) for number in range(20)))
        assert [int(one.stdout) for one in done] == list(range(20))


class FootprintContract:
    """Part of EngineFootprintContract: no other engine of this process may be at work meanwhile."""

    async def test_an_engine_that_closes_leaves_nothing(self, make_engine: MakeEngine, files_root: Path) -> None:
        """No descriptor, child, mount or folder, although its sandboxes were left open in every state."""
        await _once(make_engine())
        before, entries = _footprint(), sorted(os.listdir(files_root.parent))
        engine = make_engine()
        await engine.start()
        files = files_root / "left-open"
        files.mkdir()
        (files / "kept").write_text("kept")
        sandboxes = [
            await engine.create(SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files)) for _ in range(4)
        ]
        await sandboxes[0].start(program("/bin/sleep", "1000"))
        await sandboxes[1].start(code("import time\ntime.sleep(1000)", stdin=True))
        await finish(await sandboxes[2].start(shell("setsid sleep 1000 >/dev/null 2>&1 &")))
        await (await sandboxes[2].start(program("/bin/echo", "unread"))).wait()
        await asyncio.gather(engine.aclose(), engine.aclose())
        await engine.aclose()
        assert [await sandbox.wait_gone() for sandbox in sandboxes] == ["closed"] * 4
        with pytest.raises(SandboxUnavailable):
            await engine.create(SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files))
        assert (files / "kept").read_text() == "kept"
        assert _footprint() == before
        assert sorted(os.listdir(files_root.parent)) == entries

    async def test_programs_can_be_interrupted_although_their_host_ignores_interrupts(
        self, make_engine: MakeEngine, files_root: Path
    ) -> None:
        """As one that a shell started in the background does; what is ignored is inherited by default."""
        before = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGQUIT)}
        files = files_root / "ignoring"
        files.mkdir()
        engine = make_engine()
        try:
            await engine.start()
            sandbox = await engine.create(SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files))
            for number in before:
                done = await run(sandbox, shell(f"kill -{number.value} $$; echo survived"))
                assert (done.exit.signal, done.stdout) == (number, b"")
        finally:
            await engine.aclose()
            for number, handler in before.items():
                signal.signal(number, handler)


async def _once(engine: Engine) -> None:
    """What is opened once and for all, such as the loop's threads and the engine's own folders, is opened now."""
    await engine.start()
    await engine.aclose()
    await asyncio.to_thread(os.getpid)


def _open_pipes() -> int:
    names = [f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd")]
    return sum(os.readlink(name).startswith("pipe:") for name in names if os.path.islink(name))


def _footprint() -> tuple[int, list[str], str]:
    """Descriptors, children and mounts of this process."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return len(os.listdir("/proc/self/fd")), children, Path("/proc/self/mounts").read_text()
