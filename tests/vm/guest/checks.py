"""Inside the virtual machine: drive the namespace engine by hand and say, one JSON line a check, what was seen.

Run once as root and once as an ordinary user in a delegated group; both must see the same. Judging is left to the test
on the host, and so is everything that is not about limits.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import sys
import tempfile
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

from workbench.contracts.engine import Process, SandboxSpec
from workbench.data_folder import GROUP_PREFIX, DataFolder
from workbench.engines.namespace.engine import NamespaceEngine
from workbench.engines.namespace.sandbox import NamespaceSandbox
from workbench.engines.options import EngineOptions
from workbench.errors import QuotaExceeded
from workbench.host.guardian import Guardian
from workbench.images.build import find_image
from workbench.images.recipe import load_recipe
from workbench.model.ids import new_host_id, new_process_id, new_sandbox_id
from workbench.model.process import Limit, ProcessExit, ProcessSpec
from workbench.model.tier import STANDARD, Tier

_MIB = 2**20
_GROUPS = Path("/sys/fs/cgroup")
_NAME = f"{GROUP_PREFIX}vm-test"
# Small, so that an emulated machine reaches its ends quickly; the sizes below are chosen to fit between the two.
SMALL = dataclasses.replace(
    STANDARD, name="small", memory_bytes=128 * _MIB, processes=24, scratch_bytes=32 * _MIB, shm_bytes=16 * _MIB
)
LARGER = dataclasses.replace(SMALL, name="larger", vcpus=2, memory_bytes=256 * _MIB, processes=48)
TINY = dataclasses.replace(SMALL, name="tiny", memory_bytes=32 * _MIB, scratch_bytes=8 * _MIB, shm_bytes=8 * _MIB)
_BOMB = b"kept = []\nwhile True:\n    kept.append(bytearray(b'x') * (4 << 20))"
_FORKS = b"""
import os, time
made = 0
try:
    while True:
        if os.fork() == 0:
            # Without our output: who reads it waits until nobody can write to it.
            os.closerange(0, 3)
            time.sleep(600)
        made += 1
except BlockingIOError as refused:
    print(made, refused.errno, flush=True)
"""
_STATEFUL = b"""
import sys
kept, total = [], 0
print("ready", flush=True)
for line in sys.stdin:
    kept.append(bytearray(b'x') * (int(line) << 20))
    total += int(line)
    print(total, sum(map(len, kept)) >> 20, flush=True)
"""
_READ_FILES = b"""
import os
read = 0
for name in sorted(os.listdir('/usr/bin')):
    path = os.path.join('/usr/bin', name)
    if os.path.isfile(path) and read < 64 << 20:
        with open(path, 'rb') as file:
            read += len(file.read(8 << 20))
"""
_ANSWER_TIMEOUT_S, _PAUSE_S = 60.0, 0.1


class Failed(Exception):
    """A check saw something else than it should."""


def expect(*, seen: object, wanted: object) -> None:
    """Equal, or the check fails with both."""
    if seen != wanted:
        raise Failed(f"saw {seen!r}, wanted {wanted!r}")


def own_group() -> str:
    """As the kernel names the group of this process."""
    return Path("/proc/self/cgroup").read_text().strip().removeprefix("0::")


def leftovers() -> list[str]:
    """Groups of ours, anywhere in the tree."""
    return [str(path) for path in _GROUPS.rglob(f"{GROUP_PREFIX}*")]


def new_engine(images: Path, data: Path, name: str) -> NamespaceEngine:
    """One that imports nothing beforehand: what is imported changes no limit and is slow in here."""
    image = find_image(images, load_recipe("python"))
    return NamespaceEngine(
        EngineOptions(
            image=dataclasses.replace(image, preload=(), entry=None),
            run_dir=data / "run",
            files_root=data / "files",
            packages_root=data / "packages",
            group_name=name,
            pool_size=0,
        )
    )


class Talk:
    """A process with state, one line in and one line out at a time."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self._chunks = process.output()

    async def line(self, said: str = "") -> str:
        """What it answers."""
        if said:
            await self.process.write_stdin(f"{said}\n".encode())
        answer = b""
        async with asyncio.timeout(_ANSWER_TIMEOUT_S):
            while not answer.endswith(b"\n"):
                answer += (await anext(self._chunks)).data
        return answer.decode().strip()


class Checks:
    """All on one engine and one sandbox, in the order written: later ones build on earlier ones."""

    def __init__(self, images: Path, data: Path) -> None:
        self._images = images
        self._data = data
        self._origin = own_group()
        self._engine = new_engine(images, data, _NAME)
        self._box: NamespaceSandbox | None = None
        self._talk: Talk | None = None
        self.failed = False

    @property
    def box(self) -> NamespaceSandbox:
        """The sandbox."""
        assert self._box is not None
        return self._box

    def _file(self, name: str) -> str:
        found = list(_GROUPS.rglob(f"{self.box.slot.name}/{name}"))
        expect(seen=len(found), wanted=1)
        return found[0].read_text().strip()

    async def _run(self, code: bytes) -> tuple[ProcessExit, str]:
        process = await self.box.start(ProcessSpec(id=new_process_id(), entry="run_code", payload=code))
        output = b""
        async with asyncio.timeout(_ANSWER_TIMEOUT_S):
            async for chunk in process.output():
                output += chunk.data
            return await process.wait(), output.decode().strip()

    async def keeper_is_cgroup_v2(self) -> object:
        await self._engine.start()
        expect(seen=(self._engine.limits.keeper.kind, self._engine.limits.passed_over), wanted=("cgroup v2", ()))
        return {"kernel": os.uname().release, "shows_files_as_anothers": self._engine._maps_owner}

    async def host_is_in_its_leaf(self) -> object:
        expect(seen=own_group(), wanted=f"{self._origin.rstrip('/')}/{_NAME}/host")
        return own_group()

    async def sandbox_runs_code(self) -> object:
        files = self._data / "files" / "one"
        files.mkdir()
        self._box = await self._engine.create(SandboxSpec(id=new_sandbox_id(), tier=SMALL, files=files))
        exit_, output = await self._run(b"open('/mnt/files/x', 'w').write('kept'); print(6 * 7)")
        expect(seen=(exit_.code, exit_.limits, output), wanted=(0, (), "42"))
        expect(seen=(files / "x").read_text(), wanted="kept")
        return {name: round(spent) for name, spent in self.box.slot.steps_ms.items()}

    async def limits_are_written(self) -> object:
        seen = {name: self._file(name) for name in ("memory.max", "memory.swap.max", "pids.max", "cpu.max")}
        wanted = {"memory.max": str(SMALL.memory_bytes), "memory.swap.max": "0", "pids.max": "24",
                  "cpu.max": "100000 100000"}  # fmt: skip
        expect(seen=seen, wanted=wanted)
        return seen

    async def processes_are_in_the_group(self) -> object:
        inside = self._file("cgroup.procs").split()
        expect(seen=str(self.box.slot.pid) in inside, wanted=True)
        usage = await self.box.usage()
        expect(seen=usage.processes, wanted=len(inside))
        expect(seen=0 < usage.memory_bytes < 64 * _MIB, wanted=True)
        return {"processes": usage.processes, "memory_mib": usage.memory_bytes // _MIB, "cpu_s": usage.cpu_s}

    async def memory_bomb_is_killed_and_named(self) -> object:
        exit_, _ = await self._run(_BOMB)
        expect(seen=(exit_.signal, exit_.lost, exit_.limits), wanted=(signal.SIGKILL, False, (Limit.MEMORY,)))
        after, output = await self._run(b"print('still here')")
        expect(seen=(after.code, after.limits, output), wanted=(0, (), "still here"))
        return {"limits": exit_.limits, "peak_mib": exit_.peak_bytes // _MIB, "events": self._file("memory.events")}

    async def fork_bomb_is_refused_and_named(self) -> object:
        exit_, output = await self._run(_FORKS)
        made, code = output.split()
        expect(seen=(exit_.code, exit_.limits, code), wanted=(0, (Limit.PROCESSES,), "11"))
        expect(seen=int(made) < SMALL.processes, wanted=True)
        refused = ""
        # The one that was refused has ended since; this one takes its place.
        await self.box.start(ProcessSpec(id=new_process_id(), argv=("sleep", "600")))
        try:
            await self._run(b"")
        except QuotaExceeded as problem:
            refused = problem.message
        expect(seen=refused.startswith(Limit.PROCESSES), wanted=True)
        return {"made": int(made), "told": refused}

    async def growing_keeps_state(self) -> object:
        await self._fresh_box()
        process = await self.box.start(
            ProcessSpec(id=new_process_id(), entry="run_code", payload=_STATEFUL, stdin=True)
        )
        self._talk = Talk(process)
        expect(seen=[await self._talk.line(), await self._talk.line("40")], wanted=["ready", "40 40"])
        await self.box.change_tier(LARGER)
        # More than the small tier has: only the larger one lets it.
        expect(seen=await self._talk.line("120"), wanted="160 160")
        seen = [self._file(name) for name in ("memory.max", "pids.max", "cpu.max")]
        expect(seen=seen, wanted=[str(LARGER.memory_bytes), "48", "200000 100000"])
        return seen

    async def shrinking_below_use_is_refused_and_kills_nothing(self) -> object:
        assert self._talk is not None
        context: dict[str, str] = {}
        message = ""
        try:
            await self.box.change_tier(SMALL)
        except QuotaExceeded as problem:
            context, message = dict(problem.context), problem.message
        expect(seen=context.get("limit_bytes"), wanted=str(SMALL.memory_bytes))
        expect(seen=160 * _MIB <= int(context["used_bytes"]) < 200 * _MIB, wanted=True)
        expect(seen=self.box.tier, wanted=LARGER)
        seen = [self._file(name) for name in ("memory.max", "memory.high", "pids.max", "cpu.max")]
        expect(seen=seen, wanted=[str(LARGER.memory_bytes), "max", "48", "200000 100000"])
        expect(seen="oom_kill 0" in self._file("memory.events"), wanted=True)
        expect(seen=await self._talk.line("1"), wanted="161 161")
        return message

    async def shrinking_to_what_fits_keeps_state(self) -> object:
        assert self._talk is not None
        fits = dataclasses.replace(SMALL, name="fits", memory_bytes=200 * _MIB)
        await self.box.change_tier(fits)
        seen = [self._file(name) for name in ("memory.max", "memory.high", "pids.max", "cpu.max")]
        expect(seen=seen, wanted=[str(200 * _MIB), "max", "24", "100000 100000"])
        expect(seen=await self._talk.line("1"), wanted="162 162")
        return seen

    async def cached_files_do_not_stop_shrinking(self) -> object:
        """Pages of files can be given back, so they are, instead of refusing or killing."""
        await self._fresh_box(LARGER)
        exit_, _ = await self._run(_READ_FILES)
        before = int(self._file("memory.current"))
        expect(seen=(exit_.code, before > TINY.memory_bytes), wanted=(0, True))
        await self.box.change_tier(TINY)
        expect(seen=(self._file("memory.max"), self._file("memory.high")), wanted=(str(TINY.memory_bytes), "max"))
        expect(seen="oom_kill 0" in self._file("memory.events"), wanted=True)
        after, output = await self._run(b"print('still here')")
        expect(seen=(after.code, output), wanted=(0, "still here"))
        return {"before_mib": before // _MIB, "after_mib": int(self._file("memory.current")) // _MIB}

    async def a_second_host_in_the_same_process_has_its_own_group(self) -> object:
        second = new_engine(self._images, self._data / "second", f"{_NAME}-second")
        try:
            await second.start()
            expect(seen=second.limits.keeper.kind, wanted="cgroup v2")
            return own_group()
        finally:
            await second.aclose()

    async def nothing_is_left(self) -> object:
        await self.box.aclose()
        await self._engine.aclose()
        expect(seen=(leftovers(), own_group()), wanted=([], self._origin))
        return own_group()

    async def nothing_is_left_of_a_killed_host(self) -> object:
        """By its guardian, which is in the leaf itself and has to leave it first."""
        host = await asyncio.create_subprocess_exec(
            sys.executable, __file__, str(self._images), str(self._data / "killed"),
            stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE)  # fmt: skip
        assert host.stdin is not None
        assert host.stdout is not None
        origin = _GROUPS / self._origin.lstrip("/")
        aside = origin / "aside"
        aside.mkdir()
        # A host divides only a group that holds nobody else.
        (aside / "cgroup.procs").write_text(str(os.getpid()))
        try:
            host.stdin.write(b"start\n")
            async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                expect(seen=await host.stdout.readline(), wanted=b"cgroup v2\n")
            before = leftovers()
            expect(seen=len(before), wanted=1)
        finally:
            host.kill()
            await host.wait()
        async with asyncio.timeout(_ANSWER_TIMEOUT_S):
            while leftovers():
                await asyncio.sleep(_PAUSE_S)
        # The group that the host was started in holds processes again.
        (origin / "cgroup.procs").write_text(str(os.getpid()))
        aside.rmdir()
        return before

    async def _fresh_box(self, tier: Tier = SMALL) -> None:
        spec = dataclasses.replace(self.box.spec, id=new_sandbox_id(), tier=tier)
        await self.box.aclose()
        self._box = await self._engine.create(spec)

    async def run(self) -> None:
        """Each in turn; one that fails does not stop the next."""
        for check in (
            self.keeper_is_cgroup_v2,
            self.host_is_in_its_leaf,
            self.sandbox_runs_code,
            self.limits_are_written,
            self.processes_are_in_the_group,
            self.memory_bomb_is_killed_and_named,
            self.fork_bomb_is_refused_and_named,
            self.growing_keeps_state,
            self.shrinking_below_use_is_refused_and_kills_nothing,
            self.shrinking_to_what_fits_keeps_state,
            self.cached_files_do_not_stop_shrinking,
            self.a_second_host_in_the_same_process_has_its_own_group,
            self.nothing_is_left,
            self.nothing_is_left_of_a_killed_host,
        ):
            await self._one(check)

    async def _one(self, check: Callable[[], Awaitable[object]]) -> None:
        try:
            ok, seen = True, await check()
        except Exception as problem:  # noqa: BLE001  whatever went wrong is this check's result
            where = traceback.extract_tb(problem.__traceback__)
            lines = " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in reversed(where))
            ok, seen = False, f"{type(problem).__name__}: {problem} ({lines})"
        self.failed = self.failed or not ok
        print(json.dumps({"check": check.__name__, "ok": ok, "seen": seen}), flush=True)


async def be_a_host(images: Path, data: Path) -> None:
    """A host with its guardian, once it is told to start, and for as long as it is left alive."""
    sys.stdin.readline()
    folder = DataFolder(data)
    folder.make()
    run = folder.run_folder(new_host_id())
    run.path.mkdir()
    assert run.lock() is not None
    engine = new_engine(images, data, run.group_name)
    await engine.start()
    Guardian(folder, run.host)
    print(engine.limits.keeper.kind, flush=True)
    await asyncio.Event().wait()


def main() -> None:
    """Given the images, run all checks, and 1 if any failed; given a data folder too, be the host that one kills."""
    images, *data_folder = (Path(argument) for argument in sys.argv[1:])
    if data_folder:
        asyncio.run(be_a_host(images, data_folder[0]))
    with tempfile.TemporaryDirectory(prefix="workbench-vm-", dir="/dev/shm") as data:
        checks = Checks(images, Path(data))
        asyncio.run(checks.run())
    sys.exit(1 if checks.failed else 0)


if __name__ == "__main__":
    main()
