"""What the engine contract says about processes: streams, input, signals, ends."""

from __future__ import annotations

import asyncio
import signal

import pytest

from workbench.contracts.engine import RunningProcess, Sandbox
from workbench.errors import Conflict, InvalidRequest
from workbench.testing.driving import PATIENCE_S, Reading, code, eventually, finish, program, run, shell, still_works

_MEGABYTE = 1_000_000


class ProcessesContract:
    """Part of EngineContract, which has the fixtures."""

    async def test_both_streams_and_the_exit_code_arrive(self, sandbox: Sandbox) -> None:
        """And neither is mixed into the other."""
        done = await run(sandbox, shell("echo out; echo err >&2; exit 7"))
        assert (done.stdout, done.stderr) == (b"out\n", b"err\n")
        assert (done.exit.code, done.exit.signal, done.exit.lost, done.exit.limits) == (7, None, False, ())

    async def test_an_end_by_a_signal_is_told_as_that_signal(self, sandbox: Sandbox) -> None:
        """Not as a code."""
        done = await run(sandbox, shell("kill -ABRT $$"))
        assert (done.exit.code, done.exit.signal) == (None, signal.SIGABRT)

    async def test_the_end_tells_what_the_process_used(self, sandbox: Sandbox) -> None:
        """Time and memory of its own."""
        done = await run(sandbox, code("held = bytearray(50_000_000)\nfor number in range(10**6): pass"))
        assert done.exit.cpu_s > 0
        assert done.exit.peak_bytes > 50_000_000

    async def test_input_reaches_the_process_until_it_is_closed(self, sandbox: Sandbox) -> None:
        """Closing twice does no harm; writing after it is refused."""
        process = await sandbox.start(program("/bin/cat", stdin=True))
        await process.write_stdin(b"one ")
        await process.write_stdin(b"two")
        await process.close_stdin()
        await process.close_stdin()
        with pytest.raises(Conflict):
            await process.write_stdin(b"three")
        assert (await finish(process)).stdout == b"one two"

    async def test_input_larger_than_a_pipe_is_taken_in_full(self, sandbox: Sandbox) -> None:
        """The writer waits as long as it takes."""
        process = await sandbox.start(program("/usr/bin/wc", "-c", stdin=True))
        await process.write_stdin(b"x" * 5 * _MEGABYTE)
        await process.close_stdin()
        assert int((await finish(process)).stdout) == 5 * _MEGABYTE

    async def test_input_that_was_not_asked_for_is_refused_and_empty(self, sandbox: Sandbox) -> None:
        """A process that reads anyway sees the end at once."""
        process = await sandbox.start(shell("cat; echo read"))
        for data in (b"text", b""):
            with pytest.raises(Conflict):
                await process.write_stdin(data)
        await process.close_stdin()
        assert (await finish(process)).stdout == b"read\n"

    async def test_a_writer_is_let_go_when_the_process_ends_without_reading(self, sandbox: Sandbox) -> None:
        """It must not wait for room in a pipe that nobody empties."""
        process = await sandbox.start(shell("read line; exit 3", stdin=True))
        with pytest.raises(Conflict):
            async with asyncio.timeout(PATIENCE_S):
                await process.write_stdin(b"\n" + b"x" * 5 * _MEGABYTE)
        assert (await finish(process)).exit.code == 3
        with pytest.raises(Conflict):
            await process.write_stdin(b"more")

    async def test_big_output_is_complete(self, sandbox: Sandbox) -> None:
        """Every byte, in order, on both streams at once."""
        script = "import os\nfor n in range(200):\n os.write(1, bytes([n]) * 100_000)\n os.write(2, b'e' * 1000)"
        done = await run(sandbox, code(script))
        assert done.stdout == b"".join(bytes([number]) * 100_000 for number in range(200))
        assert done.stderr == b"e" * 200_000

    async def test_a_reader_that_waits_makes_the_process_wait(self, sandbox: Sandbox) -> None:
        """Output is pulled: what nobody reads is not kept in the host's memory."""
        process = await sandbox.start(shell("head -c 10000000 /dev/zero; echo over >&2"))
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(process.wait(), 0.3)
        done = await finish(process)
        assert (len(done.stdout), done.stderr, done.exit.code) == (10_000_000, b"over\n", 0)

    async def test_output_without_end_leaves_others_their_turn(self, sandbox: Sandbox) -> None:
        """A reader that never waits must not stop the host's loop."""
        endless = await sandbox.start(program("/usr/bin/yes"))
        reading = asyncio.ensure_future(finish(endless))
        assert (await run(sandbox, program("/bin/echo", "mine"))).stdout == b"mine\n"
        await endless.signal(signal.SIGKILL)
        assert (await reading).exit.signal == signal.SIGKILL

    async def test_the_end_may_be_awaited_before_output_is_read(self, sandbox: Sandbox) -> None:
        """What was printed is kept."""
        process = await sandbox.start(shell("echo printed; echo failed >&2; exit 1"))
        assert (await process.wait()).code == 1
        done = await finish(process)
        assert (done.stdout, done.stderr) == (b"printed\n", b"failed\n")

    async def test_the_end_may_be_awaited_by_many_and_again(self, sandbox: Sandbox) -> None:
        """One of them giving up does not disturb the rest."""
        process = await sandbox.start(program("/bin/cat", stdin=True))
        waiting = [asyncio.ensure_future(process.wait()) for _ in range(5)]
        await asyncio.sleep(0)
        waiting.pop().cancel()
        await process.close_stdin()
        ends = await asyncio.gather(*waiting)
        assert {end.code for end in ends} == {0}
        assert await process.wait() == ends[0]

    async def test_a_second_reader_is_refused(self, sandbox: Sandbox) -> None:
        """Two would each get a part."""
        process = await sandbox.start(program("/bin/cat", stdin=True))
        first = asyncio.ensure_future(finish(process))
        await asyncio.sleep(0)
        with pytest.raises(Conflict):
            await anext(process.output())
        await process.close_stdin()
        assert (await first).exit.code == 0

    async def test_many_processes_run_at_once(self, sandbox: Sandbox) -> None:
        """Each with its own streams, whether it found a warm interpreter waiting or not."""
        entries = [run(sandbox, code(f"print({number})")) for number in range(25)]
        programs = [run(sandbox, program("/bin/echo", str(number))) for number in range(25)]
        done = await asyncio.gather(*entries, *programs)
        assert [int(one.stdout) for one in done] == [*range(25), *range(25)]
        assert {one.exit.code for one in done} == {0}

    async def test_large_orders_sent_at_once_all_arrive(self, sandbox: Sandbox) -> None:
        """More than the way into the sandbox holds at one time."""
        long = "x" * 90_000
        done = await asyncio.gather(*(run(sandbox, program("/bin/echo", long, str(n))) for n in range(12)))
        assert [one.stdout for one in done] == [f"{long} {n}\n".encode() for n in range(12)]

    async def test_a_background_child_keeps_the_output_open_beyond_the_end(self, sandbox: Sandbox) -> None:
        """The end is told when the process ends, the output when the last holder is gone."""
        process = await sandbox.start(shell("mkfifo gate; (cat gate) & echo early"))
        async with Reading(process) as reading:
            await reading.until(b"early\n")
            assert (await process.wait()).code == 0
            await run(sandbox, shell("echo late > gate"))
            assert await reading.rest() == b"early\nlate\n"

    async def test_a_signal_reaches_the_whole_group(self, sandbox: Sandbox) -> None:
        """The children hold the output: it ends only if they do."""
        process = await sandbox.start(shell("sleep 1000 & sleep 1000 & echo ready; wait"))
        async with Reading(process) as reading:
            await reading.until(b"ready\n")
            await process.signal(signal.SIGTERM)
            await reading.rest()
        assert (await process.wait()).signal == signal.SIGTERM

    async def test_an_interrupt_ends_a_program(self, sandbox: Sandbox) -> None:
        """A program must not inherit that interrupts are ignored."""
        process = await sandbox.start(program("/bin/sleep", "1000"))
        await process.signal(signal.SIGINT)
        assert (await finish(process)).exit.signal == signal.SIGINT

    async def test_an_interrupt_sent_at_once_is_not_lost(self, sandbox: Sandbox) -> None:
        """However early it comes, the code stops."""
        # Not one long sleep: between its last look at signals and the call, an interpreter itself would miss one.
        napping = "import time\nwhile True: time.sleep(0.01)"
        processes = [await sandbox.start(code(napping)) for _ in range(5)]
        for process in processes:
            await process.signal(signal.SIGINT)
        for process in processes:
            done = await finish(process)
            assert done.exit.code == 1 or done.exit.signal == signal.SIGINT, done

    async def test_a_signal_for_a_process_that_has_ended_does_nothing(self, sandbox: Sandbox) -> None:
        """Its number may be another's by now."""
        process = await sandbox.start(program("/bin/true"))
        await finish(process)
        await process.signal(signal.SIGKILL)
        assert (await process.wait()).code == 0

    @pytest.mark.parametrize("number", [0, -1, 65, 9999, 2**40])
    async def test_a_number_that_is_no_signal_is_refused(self, sandbox: Sandbox, number: int) -> None:
        """And costs neither the process nor the sandbox."""
        process = await sandbox.start(program("/bin/cat", stdin=True))
        with pytest.raises(InvalidRequest, match="signal"):
            await process.signal(number)
        await process.close_stdin()
        assert (await finish(process)).exit.code == 0
        assert await still_works(sandbox)

    async def test_a_process_that_closes_its_output_keeps_its_input(self, sandbox: Sandbox) -> None:
        """The end of the output is not the end of the process."""
        script = "import os, sys\nos.close(1); os.close(2)\nos._exit(9 if sys.stdin.read() == 'go' else 8)"
        process = await sandbox.start(code(script, stdin=True))
        async with Reading(process) as reading:
            assert await reading.rest() == b""
        await process.write_stdin(b"go")
        await process.close_stdin()
        assert (await process.wait()).code == 9

    async def test_a_process_that_closes_everything_still_ends(self, sandbox: Sandbox) -> None:
        """With its own code, and without harm to the next one."""
        assert (await run(sandbox, code("import os\nos.closerange(0, 4096)\nos._exit(5)"))).exit.code == 5
        assert await still_works(sandbox)

    async def test_what_runs_is_listed_with_who_started_it(self, sandbox: Sandbox) -> None:
        """What was left in the background as well; what the engine keeps for itself is not."""
        assert await sandbox.processes() == ()
        left = await run(sandbox, shell("sleep 1234 >/dev/null 2>&1 & echo $!"))
        began = await sandbox.start(started := program("/bin/sleep", "4321"))
        listed: dict[str, RunningProcess] = {}

        async def both_are_what_they_were_started_as() -> bool:
            listed.clear()
            listed.update({one.command: one for one in await sandbox.processes()})
            return listed.keys() == {"sleep 1234", "/bin/sleep 4321"}

        await eventually(both_are_what_they_were_started_as, "the two that were started are listed, and nothing else")
        assert listed["sleep 1234"].pid == int(left.stdout)
        assert listed["sleep 1234"].started_as is None
        assert listed["/bin/sleep 4321"].started_as == started.id
        assert listed["/bin/sleep 4321"].memory_bytes > 0
        await began.signal(signal.SIGKILL)
        await began.wait()

    async def test_what_was_prepared_for_another_entry_is_not_in_the_way(self, sandbox: Sandbox) -> None:
        """A head start that nobody takes costs nothing: a program and an entry run as ever, and nothing else."""
        assert await still_works(sandbox)
        assert await sandbox.processes() == ()
