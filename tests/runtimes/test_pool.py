"""Kernels that were started before anybody asked: whose they are, what they cost others, and when they go."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import MakeEngineOptions
from tests.runtimes.programs.hosted import Session

from workbench.contracts.engine import Ahead, SandboxSpec
from workbench.engines import proc
from workbench.engines.namespace.engine import NamespaceEngine
from workbench.engines.namespace.sandbox import NamespaceSandbox
from workbench.engines.options import EngineOptions
from workbench.host.cells.memory import Patience
from workbench.host.cells.mount_files import Mount
from workbench.host.cells.sandbox_cells import CellOptions, SandboxCells
from workbench.host_client.find import connect_or_start
from workbench.kernels.launcher import JupyterLauncher
from workbench.model.execution import Outcome
from workbench.model.ids import new_sandbox_id
from workbench.model.process import Limit
from workbench.model.session import WITHOUT_TOOLS
from workbench.model.tier import STANDARD, TIERS, Tier
from workbench.runtimes.loading import load_runtimes
from workbench.settings import Settings
from workbench.testing.driving import eventually
from workbench.wire import host as wire
from workbench.wire import kernels

pytestmark = pytest.mark.isolation

_IDENTITY = "[process.env.WHOSE ?? null, process.cwd(), process.env.WORKBENCH_BEGIN ?? null]"
_OF_R = "p <- Sys.getpid(); e <- Sys.getenv(); cat(paste0(names(e), '=', e), getwd(), sep = '\\n'); invisible(plot(1))"
_SOCKETS = "require('fs').readdirSync('/tmp').filter((name) => name.startsWith('.kernel-')).length"


class Pooling:
    """A real engine whose sandboxes are asked for as the host asks for them."""

    def __init__(self, engine: NamespaceEngine, options: EngineOptions, launcher: JupyterLauncher) -> None:
        self.engine = engine
        self._options = options
        self._launcher = launcher
        self._runtimes = load_runtimes()

    def packages(self) -> Path:
        """An empty folder of a session's packages."""
        made = self._options.packages_root / "of-one"
        made.mkdir(parents=True)
        return made

    def ahead(self, runtime: str = "node") -> Ahead | None:
        known = self._runtimes.find(runtime)
        assert known is not None
        return self._launcher.ahead(known)

    @contextlib.asynccontextmanager
    async def session(
        self,
        env: dict[str, str] | None = None,
        folder: str = "/mnt/files",
        wanted: str = "node",
        tier: Tier = STANDARD,
        packages: Path | None = None,
    ) -> AsyncIterator[Session]:
        identity = new_sandbox_id()
        files = self._options.files_root / identity
        files.mkdir(parents=True)
        (files / "whose.txt").write_text(identity)
        entry = "kernel" if wanted == "python" else "program_kernel"
        spec = SandboxSpec(
            id=identity,
            tier=tier,
            files=files,
            packages=packages,
            env=env or {},
            first_entry=entry,
            ahead=self.ahead(wanted),
        )
        sandbox = await self.engine.create(spec)
        spool = self._options.run_dir / "spool"
        spool.mkdir(exist_ok=True)
        options = CellOptions(self._launcher, spool, 2**28, 3600.0, Patience(), runtimes=self._runtimes)
        mount = Mount(files, STANDARD.files_bytes, STANDARD.files_inodes)
        cells = SandboxCells(sandbox, mount, options, files_kept=True, check_living=lambda: None)
        cells.open()
        try:
            await cells.start_kernel(
                kernels.StartKernel(sandbox="sb", kernel="main", epoch=1, runtime=wanted, working_folder=folder)
            )
            yield Session(sandbox, cells)
        finally:
            cells.close()
            await sandbox.aclose()
            await cells.aclose()

    async def until_one_waits(self, name: str = "node") -> int:
        """The process of the program that waits, as the machine has it."""
        found: list[int] = []

        async def up() -> bool:
            found[:] = [pid for slot in self.engine._ahead.pids for pid in _programs(slot, name)]
            return len(found) == 1 and self.engine.pooled == self._options.pool_size

        await eventually(up, "a program waits beside the pool")
        return found[0]


def _programs(slot: int, name: str = "node") -> list[int]:
    """Below it, with that in what they were started by."""
    return [pid for pid in proc.tree(slot)[1:] if f"workbench_guest/{name}/kernel" in _started_by(pid)]


def _started_by(pid: int) -> str:
    return Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").replace("\0", " ")


def _program(session: Session, name: str = "node") -> int:
    """The one kernel that runs in it."""
    assert isinstance(session.sandbox, NamespaceSandbox)
    found = _programs(session.sandbox.root_pid, name)
    assert len(found) == 1
    return found[0]


async def _told(session: Session, expression: str) -> Any:
    """What it is, in JSON."""
    ran = await session.run(f"console.log(JSON.stringify({expression}))")
    assert ran.outcome is Outcome.OK, ran
    return json.loads(ran.stdout.text)


async def _identity(session: Session) -> Any:
    return await _told(session, _IDENTITY)


@pytest.fixture
async def pooling(
    short_dir: Path, make_engine_options: MakeEngineOptions, request: pytest.FixtureRequest
) -> AsyncIterator[Pooling]:
    """One for each test; how long what waits is kept is the test's parameter."""
    options = make_engine_options(short_dir)
    options = dataclasses.replace(options, image=dataclasses.replace(options.image, preload=()))
    options.run_dir.mkdir(parents=True)
    options.files_root.mkdir(parents=True)
    launcher = JupyterLauncher(short_dir / "kernels")
    engine = NamespaceEngine(options, ahead_idle_s=getattr(request, "param", 900.0))
    try:
        await engine.start()
        yield Pooling(engine, options, launcher)
    finally:
        await engine.aclose()
        left = [*(short_dir / "kernels").iterdir()]
        await launcher.aclose()
        assert left == [], "what was made for kernels that nobody took is gone with them"


async def test_nothing_waits_until_somebody_has_asked_for_it(pooling: Pooling) -> None:
    async with pooling.session(wanted="python") as session:
        assert (await session.run("6 * 7")).results.text == "42"

        async def full() -> bool:
            return pooling.engine.pooled == 2

        await eventually(full, "the pool is full")
    assert pooling.engine.ahead == 0


async def test_a_session_gets_the_one_that_waited_with_all_that_is_its_own(pooling: Pooling) -> None:
    async with pooling.session():
        pass
    waiting = await pooling.until_one_waits()
    async with pooling.session({"WHOSE": "mine: ü€\n'"}, "/mnt/files/deep/er") as session:
        assert _program(session) == waiting
        assert await _identity(session) == ["mine: ü€\n'", "/mnt/files/deep/er", None]
        assert (await session.run("require('os').homedir() + ' ' + __dirname")).results.text == (
            "'/home/user /mnt/files/deep/er'"
        )
        own = (await session.run("require('fs').readFileSync('/mnt/files/whose.txt', 'utf8')")).results.text
        assert own == f"'{session.sandbox.description.id}'"
        child = "require('child_process').execSync('echo $WHOSE; pwd; ls /mnt/files').toString().split('\\n')"
        assert (await _told(session, child))[-4:] == [
            "/mnt/files/deep/er", "deep", "whose.txt", "",
        ]  # fmt: skip
        assert (await session.run(_SOCKETS)).results.text == "0", "its sockets and key are not to be found"
        printed = await session.run("console.log('a'); console.error('b'); require('fs').writeSync(1, 'c\\n')")
        assert sorted(printed.stdout.text.split()) == ["a", "c"]
        assert printed.stderr.text == "b\n"


async def test_it_has_the_variables_of_a_cold_start_and_no_others(pooling: Pooling) -> None:
    names = "Object.entries(process.env).sort()"
    async with pooling.session({"WHOSE": "first"}) as session:
        cold = await _told(session, names)
    waiting = await pooling.until_one_waits()
    async with pooling.session({"WHOSE": "first"}) as session:
        assert _program(session) == waiting
        assert await _told(session, names) == cold


async def test_r_waits_as_well_and_has_the_variables_and_the_folder_of_its_session(pooling: Pooling) -> None:
    seen = []
    async with pooling.session({"WHOSE": "mine"}, "/mnt/files/deep", wanted="r") as session:
        seen.append(await session.run(_OF_R))
    waiting = await pooling.until_one_waits("r")
    async with pooling.session({"WHOSE": "mine"}, "/mnt/files/deep", wanted="r") as session:
        assert _program(session, "r") == waiting
        seen.append(await session.run(_OF_R))
    cold, waited = ({*ran.stdout.text.splitlines()} for ran in seen)
    assert {"WHOSE=mine", "/mnt/files/deep"} <= waited
    # Where R keeps its own files is not the same in two processes.
    assert {line for line in cold ^ waited if not line.startswith("R_SESSION_TMPDIR=")} == set()
    assert [len([one for one in ran.displays if "image/png" in one.data]) for ran in seen] == [1, 1]


async def test_r_that_waited_finds_the_packages_that_its_session_has_already(pooling: Pooling, tmp_path: Path) -> None:
    packages = pooling.packages()
    library = packages / "r" / "library"
    library.mkdir(parents=True)
    source = tmp_path / "tiny"
    (source / "R").mkdir(parents=True)
    (source / "DESCRIPTION").write_text("Package: tiny\nVersion: 1.0\nTitle: T\nDescription: D.\nLicense: MIT\n")
    (source / "NAMESPACE").write_text("export(six)\n")
    (source / "R" / "six.R").write_text("six <- function() 6\n")
    install = ("R", "CMD", "INSTALL", "--no-docs", "--no-test-load", f"--library={library}", os.fspath(source))
    await asyncio.to_thread(subprocess.run, install, check=True, capture_output=True)
    async with pooling.session(wanted="r"):
        pass
    waiting = await pooling.until_one_waits("r")
    async with pooling.session(wanted="r", packages=packages) as session:
        assert _program(session, "r") == waiting
        ran = await session.run("cat(requireNamespace('tiny', quietly = TRUE), tiny::six())")
        assert (ran.outcome, ran.stdout.text) == (Outcome.OK, "TRUE 6")


async def test_two_sessions_never_get_the_same_one_and_see_nothing_of_each_other(pooling: Pooling) -> None:
    async with pooling.session():
        pass
    waiting = await pooling.until_one_waits()
    async with pooling.session({"WHOSE": "a"}) as first, pooling.session({"WHOSE": "b"}) as second:
        programs = {_program(first), _program(second)}
        assert waiting in programs
        assert len(programs) == 2
        await first.run("globalThis.secret = 1; require('fs').writeFileSync('/tmp/left', 'x')")
        assert (await second.run("typeof secret + require('fs').existsSync('/tmp/left')")).results.text == (
            "'undefinedfalse'"
        )
        assert [(await _identity(one))[0] for one in (first, second)] == ["a", "b"]
    again = await pooling.until_one_waits()
    assert again not in programs
    async with pooling.session() as third:
        assert _program(third) == again
        assert await _identity(third) == [None, "/mnt/files", None]
        assert (await third.run("typeof secret + require('fs').existsSync('/tmp/left')")).results.text == (
            "'undefinedfalse'"
        )


async def test_what_node_reads_at_its_start_is_a_start_of_its_own(pooling: Pooling) -> None:
    async with pooling.session():
        pass
    waiting = await pooling.until_one_waits()
    env = {"TZ": "Asia/Tokyo", "NODE_OPTIONS": "--max-old-space-size=77"}
    async with pooling.session(env) as session:
        assert _program(session) != waiting
        assert not Path(f"/proc/{waiting}").exists()
        assert (await session.run("new Date(0).getHours()")).results.text == "9"
        heap = "Math.round(require('v8').getHeapStatistics().heap_size_limit / 2 ** 20)"
        assert int((await session.run(heap)).results.text) < 200


async def test_where_r_keeps_its_own_files_is_a_start_of_its_own(pooling: Pooling) -> None:
    async with pooling.session(wanted="r"):
        pass
    waiting = await pooling.until_one_waits("r")
    async with pooling.session({"TMPDIR": "/mnt/files"}, wanted="r") as session:
        assert _program(session, "r") != waiting
        assert (await session.run("cat(dirname(tempdir()))")).stdout.text == "/mnt/files"


@pytest.mark.parametrize(
    ("wanted", "helpers", "told"),
    [
        ("node", "console.log(typeof web_search, typeof upload_local_file)", "undefined function\n"),
        ("r", "cat(exists('web_search'), exists('upload_local_file'))", "FALSE TRUE"),
    ],
    ids=["node", "r"],
)
async def test_a_session_without_tool_execution_has_no_such_helpers_though_a_kernel_waited(
    pooling: Pooling, wanted: str, helpers: str, told: str
) -> None:
    async with pooling.session(wanted=wanted):
        pass
    await pooling.until_one_waits(wanted)
    async with pooling.session(WITHOUT_TOOLS, wanted=wanted) as session:
        assert (await session.run(helpers)).stdout.text == told


async def test_a_larger_tier_is_a_larger_one(pooling: Pooling) -> None:
    async with pooling.session():
        pass
    waiting = await pooling.until_one_waits()
    tier = TIERS["large"]
    async with pooling.session(tier=tier) as session:
        assert (_program(session) == waiting) is not pooling.engine.limits.keeper.watches
        space = "(({ bsize, blocks }) => bsize * blocks)(require('fs').statfsSync('/tmp'))"
        assert await _told(session, space) == tier.scratch_bytes
        cpus = min(tier.vcpus, len(os.sched_getaffinity(0)))
        assert await _told(session, "process.env.OMP_NUM_THREADS") == str(cpus)
        allocated = f"Buffer.alloc({STANDARD.memory_bytes + 2**27}, 1).length"
        assert await _told(session, allocated) == STANDARD.memory_bytes + 2**27


@pytest.mark.parametrize("whom", ["the program", "its keeper"])
async def test_one_that_was_killed_while_it_waited_costs_nothing_and_is_replaced(pooling: Pooling, whom: str) -> None:
    async with pooling.session():
        pass
    waiting = await pooling.until_one_waits()
    victim = waiting if whom == "the program" else proc.parent(waiting)
    assert victim is not None
    os.kill(victim, signal.SIGKILL)
    async with pooling.session({"WHOSE": "cold"}) as session:
        assert _program(session) != waiting
        assert await _identity(session) == ["cold", "/mnt/files", None]
        assert (await session.run("6 * 7")).outcome is Outcome.OK
    assert await pooling.until_one_waits() != waiting


async def test_one_that_is_stuck_costs_its_time_and_no_error(pooling: Pooling, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("workbench.kernels.launcher._WAITING_TIMEOUT_S", 0.5)
    async with pooling.session():
        pass
    waiting = await pooling.until_one_waits()
    os.kill(waiting, signal.SIGSTOP)
    async with pooling.session() as session:
        assert _program(session) != waiting
        assert (await session.run("6 * 7")).results.text == "42"


async def test_its_end_its_interrupts_and_its_limits_are_those_of_every_kernel(pooling: Pooling) -> None:
    async with pooling.session():
        pass
    waiting = await pooling.until_one_waits()
    async with pooling.session() as session:
        assert _program(session) == waiting
        assert (await session.run("var kept = 5; while (true);", limit_s=0.5)).outcome is Outcome.TIMED_OUT
        assert (await session.run("kept")).results.text == "5"
        assert int((await session.run("require('fs').readdirSync('/proc/self/fd').length")).results.text) < 60
        limit = "require('child_process').execSync('ulimit -n').toString().trim()"
        assert (await session.run(limit)).results.text == f"'{STANDARD.open_files}'"
        hog = "const all = []; while (true) all.push(Buffer.alloc(64 * 2 ** 20, 1))"
        lost = await session.run(hog)
        assert lost.outcome is Outcome.LOST
        assert Limit.MEMORY in lost.limits
        assert (await session.run("typeof kept")).results.text == "'undefined'"


@pytest.mark.parametrize("pooling", [0.5], indirect=True)
async def test_what_nobody_asks_for_any_more_is_given_up_and_the_pool_of_python_stays(pooling: Pooling) -> None:
    async with pooling.session():
        pass

    async def waits() -> bool:
        return pooling.engine.ahead == 1

    async def gone() -> bool:
        return pooling.engine.ahead == 0 and pooling.engine.pooled == 2

    await eventually(waits, "one waits")
    await eventually(gone, "it is given up")
    assert pooling.engine._ahead._wanted == {}


async def test_with_little_memory_left_none_is_kept(pooling: Pooling) -> None:
    async with pooling.session():
        pass
    waiting = await pooling.until_one_waits()
    pooling.engine._ahead._free_bytes = lambda: 0

    async def gone() -> bool:
        return pooling.engine.ahead == 0 and not Path(f"/proc/{waiting}").exists()

    await eventually(gone, "it is given up")
    async with pooling.session() as session:
        assert (await session.run("6 * 7")).results.text == "42"
    assert pooling.engine.ahead == 0


async def test_sessions_of_python_have_their_own_pool_and_leave_this_one_alone(pooling: Pooling) -> None:
    async with pooling.session():
        pass
    waiting = await pooling.until_one_waits()
    pooled = {slot.pid for slot in pooling.engine._pool}
    async with pooling.session(wanted="python") as session:
        assert isinstance(session.sandbox, NamespaceSandbox)
        assert session.sandbox.root_pid in pooled
        assert (await session.run("6 * 7")).results.text == "42"
        assert await pooling.until_one_waits() == waiting


async def test_a_host_has_one_waiting_once_it_was_asked_for(short_dir: Path) -> None:
    settings = dataclasses.replace(Settings.from_env(os.environ), data_dir=short_dir / "data", pool_size=1)
    async with await connect_or_start(settings, os.environ) as connection:
        try:

            async def ahead(count: int) -> None:
                async def so_many() -> bool:
                    return (await connection.ask(wire.Status(), wire.StatusAnswer)).ahead == count

                await eventually(so_many, f"{count} wait")

            async def answer() -> str:
                sandbox = new_sandbox_id()
                request = wire.CreateSandbox(sandbox=sandbox, kernel=True, runtime="node", env={"WHOSE": sandbox})
                await connection.ask(request, wire.SandboxReport)
                start = kernels.StartKernel(sandbox=sandbox, kernel="main", epoch=1, runtime="node")
                await connection.ask(start, kernels.KernelReport)
                cell = kernels.RunCell(
                    sandbox=sandbox, kernel="main", cell="c", code="process.env.WHOSE", limit_s=60.0, wait_s=60.0
                )
                report = await connection.ask(cell, kernels.CellReport)
                assert report.result is not None
                assert report.result.results.text == f"'{sandbox}'"
                return sandbox

            await ahead(0)
            sandboxes = [await answer()]
            await ahead(1)
            sandboxes += await asyncio.gather(answer(), answer())
            for sandbox in sandboxes:
                await connection.ask(wire.CloseSandbox(sandbox=sandbox), wire.Done)
            await ahead(1)
        finally:
            await connection.ask(wire.Stop(), wire.Done)

    async def left() -> bool:
        return not any((settings.data_dir / "hosts").iterdir())

    await eventually(left, "the host has left")
