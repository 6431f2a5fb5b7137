"""The namespace engine passes the contract; and what only it can get wrong."""

from __future__ import annotations

import asyncio
import os
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from tests.conftest import MakeEngineOptions

from workbench.contracts.engine import Engine, SandboxSpec
from workbench.engines.namespace.engine import NamespaceEngine
from workbench.errors import InvalidRequest, IsolationTooWeak, SandboxUnavailable
from workbench.guest_trees import remove_tree
from workbench.model.capability import ISOLATION, Barrier, Grade
from workbench.model.ids import new_sandbox_id
from workbench.model.process import Limit
from workbench.model.tier import MEDIUM, STANDARD
from workbench.testing.driving import (
    PATIENCE_S,
    TINY,
    MakeSandbox,
    Reading,
    code,
    eventually,
    finish,
    program,
    run,
    shell,
    still_works,
)
from workbench.testing.engine_contract import EngineContract, EngineFootprintContract
from workbench.testing.engine_lifetimes import MakeEngine
from workbench.testing.engine_limits import FILL, grade

# A name that is no text, as /proc shows it to whoever looks.
_STRANGE_NAME = "import ctypes\nctypes.CDLL(None).prctl(15, b'\\xff)\\n(\\xfe 1 2')\n"

_NEST = """\
import os
os.chdir("/mnt/files")
for _ in range(1300):
    os.mkdir("d")
    os.chdir("d")
"""
# A deep file without a name; enough to be looked at, and more than is allowed.
_FILL_UNSEEN = (
    _NEST
    + """\
file = os.open("unlinked", os.O_CREAT | os.O_WRONLY)
os.posix_fallocate(file, 0, 400 * 2**20)
os.unlink("unlinked")
input()
"""
)


class _Fixtures:
    @pytest.fixture(scope="class")
    @classmethod
    def files_root(cls, class_dir: Path) -> Path:
        folder = class_dir / "files"
        folder.mkdir()
        (class_dir / "run").mkdir()
        return folder

    @pytest.fixture(scope="class")
    @classmethod
    def make_engine(cls, class_dir: Path, files_root: Path, make_engine_options: MakeEngineOptions) -> MakeEngine:
        assert files_root.parent == class_dir
        return lambda: NamespaceEngine(make_engine_options(class_dir))


@pytest.mark.isolation
class TestNamespaceEngineFootprint(_Fixtures, EngineFootprintContract):
    async def test_a_sandbox_that_died_and_was_not_closed_is_freed_with_the_engine(
        self, make_engine: MakeEngine, files_root: Path
    ) -> None:
        before = len(os.listdir("/proc/self/fd"))
        engine = make_engine()
        await engine.start()
        (files_root / "died").mkdir()
        sandbox = await engine.create(SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files_root / "died"))
        root_pid = sandbox.description.root_pid
        assert root_pid is not None
        os.kill(root_pid, signal.SIGKILL)
        await sandbox.wait_gone()
        await engine.aclose()
        assert str(root_pid) not in os.listdir("/proc")
        assert len(os.listdir("/proc/self/fd")) == before

    async def test_no_control_group_is_left(
        self, class_dir: Path, files_root: Path, make_engine_options: MakeEngineOptions
    ) -> None:
        options = make_engine_options(class_dir)
        engine = NamespaceEngine(options)
        await engine.start()
        (files_root / "grouped").mkdir()
        sandbox = await engine.create(SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files_root / "grouped"))
        await sandbox.start(shell("setsid sleep 1000 & sleep 1000"))
        held = _groups(options.group_name)
        await engine.aclose()
        assert bool(held) == (grade(engine, Barrier.MEMORY) is Grade.ENFORCED)
        assert _groups(options.group_name) == []


@pytest.mark.isolation
class TestNamespaceEngine(_Fixtures, EngineContract):
    async def test_isolation_is_enforced_in_every_part(self, engine: Engine) -> None:
        assert {grade(engine, barrier) for barrier in ISOLATION} == {Grade.ENFORCED}
        assert (grade(engine, Barrier.OWN_UID) is Grade.ENFORCED) == (os.geteuid() == 0)

    async def test_pid_1_killed_from_outside_ends_everything_as_lost(self, make_sandbox: MakeSandbox) -> None:
        sandbox = await make_sandbox()
        process = await sandbox.start(shell("echo printed; sleep 1000", stdin=True))
        entry = await sandbox.start(code("import time\ntime.sleep(1000)"))
        async with Reading(process) as reading:
            await reading.until(b"printed\n")
            assert sandbox.description.root_pid is not None
            os.kill(sandbox.description.root_pid, signal.SIGKILL)
            async with asyncio.timeout(PATIENCE_S):
                assert await sandbox.wait_gone() == "the sandbox ended by itself"
                ends = [await process.wait(), await entry.wait()]
            assert [(end.code, end.lost, end.reason) for end in ends] == [
                (None, True, "the sandbox ended by itself")
            ] * 2
            assert await reading.rest() == b"printed\n"
        with pytest.raises(SandboxUnavailable, match="ended by itself"):
            await sandbox.start(program("/bin/true"))
        await sandbox.aclose()

    async def test_a_spare_interpreter_killed_by_the_agent_is_replaced(self, make_sandbox: MakeSandbox) -> None:
        sandbox = await make_sandbox()
        await run(sandbox, shell("kill -9 -1"))

        async def only_pid_1() -> bool:
            return (await sandbox.usage()).processes == 1

        await eventually(only_pid_1, "the spare is gone")
        done = await asyncio.gather(*(run(sandbox, code(f"print({number})")) for number in range(50)))
        assert [int(one.stdout) for one in done] == list(range(50))

    async def test_a_dead_zygote_costs_no_sandbox_and_the_next_one_comes_up(
        self, engine: Engine, make_sandbox: MakeSandbox
    ) -> None:
        assert isinstance(engine, NamespaceEngine)
        sandbox = await make_sandbox()
        os.kill(_zygote_pid(engine), signal.SIGKILL)
        made = await asyncio.gather(*(make_sandbox() for _ in range(4)))
        assert await still_works(sandbox)
        assert all([await still_works(one) for one in made])
        await sandbox.change_tier(MEDIUM)

    async def test_closing_while_the_tier_changes_harms_nobody(self, engine: Engine, make_sandbox: MakeSandbox) -> None:
        assert isinstance(engine, NamespaceEngine)
        zygote = _zygote_pid(engine)
        for turns in (0, 1, 2, 5):
            sandbox = await make_sandbox()
            changing = asyncio.ensure_future(sandbox.change_tier(MEDIUM))
            for _ in range(turns):
                await asyncio.sleep(0)
            await sandbox.aclose()
            await asyncio.wait([changing])
            assert changing.exception() is None or isinstance(changing.exception(), SandboxUnavailable)
        assert _zygote_pid(engine) == zygote
        assert await still_works(await make_sandbox())

    async def test_a_change_of_tier_that_is_cancelled_leaves_the_zygote_in_step(
        self, make_sandbox: MakeSandbox
    ) -> None:
        sandbox = await make_sandbox()
        for turns in range(8):
            changing = asyncio.ensure_future(sandbox.change_tier(MEDIUM))
            for _ in range(turns):
                await asyncio.sleep(0)
            changing.cancel()
            await asyncio.wait([changing])
        await sandbox.change_tier(STANDARD)
        assert sandbox.description.tier == "standard"
        assert await still_works(await make_sandbox())

    async def test_a_process_with_a_strange_name_does_not_blind_the_watchdog(self, make_sandbox: MakeSandbox) -> None:
        """A look at /proc that fails for one guest must not end the looking."""
        stranger, other = await make_sandbox(tier=TINY), await make_sandbox(tier=TINY)
        named = await stranger.start(code(_STRANGE_NAME + "print('named', flush=True)\ninput()", stdin=True))
        async with Reading(named) as reading:
            await reading.until(b"named")
            assert (await stranger.usage()).processes >= 1
            done = await finish(await other.start(code(FILL, stdin=True)))
        assert Limit.MEMORY in done.exit.limits, done

    async def test_variables_too_large_on_the_way_are_refused_and_leave_no_slot(
        self, engine: Engine, make_sandbox: MakeSandbox
    ) -> None:
        assert isinstance(engine, NamespaceEngine)
        with pytest.raises(InvalidRequest, match="too large"):
            await make_sandbox(env={"A": "\x01" * 90_000})
        assert await still_works(await make_sandbox())

    async def test_files_of_a_full_folder_end_the_sandbox_that_filled_it(self, make_sandbox: MakeSandbox) -> None:
        """Watched, by how much fuller the disk has become: 256 MiB are looked at, 2 MiB are allowed here."""
        sandbox = await make_sandbox(tier=replace(STANDARD, files_bytes=2 * 2**20))
        process = await sandbox.start(shell("head -c 400000000 /dev/zero > /mnt/files/large; sleep 1000"))
        async with asyncio.timeout(PATIENCE_S):
            assert (await sandbox.wait_gone()).startswith("disk full: /mnt/files holds")
        assert (await finish(process)).exit.reason.startswith("disk full")

    async def test_files_deeper_than_a_path_and_without_a_name_are_counted(self, make_sandbox: MakeSandbox) -> None:
        """By a real guest; the proof has the same with its controls."""
        sandbox = await make_sandbox(tier=replace(STANDARD, files_bytes=2 * 2**20))
        process = await sandbox.start(code(_FILL_UNSEEN, stdin=True))
        async with asyncio.timeout(PATIENCE_S):
            assert (await sandbox.wait_gone()).startswith("disk full: /mnt/files holds")
        assert (await finish(process)).exit.lost

    async def test_deep_files_of_an_earlier_sandbox_are_shown_to_the_next(
        self, engine: Engine, files_root: Path
    ) -> None:
        """Also where they have to be given to it, one by one, and are more than a path can name."""
        (files_root / "deep").mkdir()
        spec = SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files_root / "deep")
        first = await engine.create(spec)
        assert (await run(first, code(_NEST))).exit.code == 0
        await first.aclose()
        os.chown(files_root / "deep", os.geteuid(), os.getegid())
        second = await engine.create(replace(spec, id=new_sandbox_id()))
        assert (await run(second, shell("cd /mnt/files/d/d/d && touch here"))).exit.code == 0
        await second.aclose()
        assert await asyncio.to_thread(remove_tree, files_root / "deep")

    async def test_the_pool_is_filled_again_after_a_sandbox_was_taken(
        self, engine: Engine, make_sandbox: MakeSandbox
    ) -> None:
        assert isinstance(engine, NamespaceEngine)
        await make_sandbox()

        async def full() -> bool:
            return engine.pooled == 2

        await eventually(full, "two slots wait")


@pytest.mark.isolation
async def test_an_old_zygote_is_replaced_while_nobody_asks_and_what_it_made_lives_on(
    short_dir: Path, make_engine_options: MakeEngineOptions
) -> None:
    """The trial, two for the pool, and one more for the pool when a sandbox took one: four clones."""
    engine = NamespaceEngine(make_engine_options(short_dir), zygote_max_clones=3)
    try:
        await engine.start()

        async def full() -> bool:
            return engine.pooled == 2

        await eventually(full, "two slots wait")
        first = engine._zygote
        assert first is not None
        (short_dir / "files" / "m").mkdir()
        spec = SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=short_dir / "files" / "m")
        sandbox = await engine.create(spec)

        async def renewed() -> bool:
            return engine.pooled == 2 and all(slot.zygote is engine._zygote is not first for slot in engine._pool)

        await eventually(renewed, "both slots are of another zygote")
        assert not first.check()
        assert await still_works(sandbox)
    finally:
        await engine.aclose()


@pytest.mark.isolation
async def test_an_engine_without_its_interpreter_names_the_step_and_leaves_nothing(
    short_dir: Path, make_engine_options: MakeEngineOptions
) -> None:
    options = make_engine_options(short_dir)
    broken = replace(options, image=replace(options.image, python="/no/such/python"))
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(IsolationTooWeak) as refusal:
        await NamespaceEngine(broken).start()
    assert refusal.value.context["step"] == "execute the image's interpreter"
    assert len(os.listdir("/proc/self/fd")) == before


def _zygote_pid(engine: NamespaceEngine) -> int:
    assert engine._zygote is not None
    return engine._zygote.pid


def _groups(name: str) -> list[Path]:
    return list(Path("/sys/fs/cgroup").glob(f"**/{name}*"))
