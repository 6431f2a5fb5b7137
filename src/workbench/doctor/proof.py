"""The proof: every attack inside a real sandbox, each with a control outside in which it succeeds.

Which attacks there are is `workbench_guest.attacks`'; how one is judged is in `rows`.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from workbench.contracts.engine import Engine, Sandbox, SandboxSpec
from workbench.doctor.bait import CANARY_VARIABLE, Bait, laid_out, put_privileged
from workbench.doctor.render import render_json, render_table
from workbench.doctor.rows import Result, Row, Surroundings, got_through, row, told
from workbench.doctor.runs import ControlSettings, Order, run_inside, run_outside
from workbench.errors import InvalidRequest
from workbench.guest_trees import remove_tree
from workbench.model.ids import new_process_id, new_sandbox_id
from workbench.model.image import Image
from workbench.model.process import ProcessSpec
from workbench.model.tier import STANDARD, Tier
from workbench_guest.attacks.registry import Attack, Given, Judge, Outside, all_attacks

_MIB = 1 << 20
# Several looks of a watchdog that looks four times a second.
_HOLD_S = 2.0
# A smaller mount than any tier has, so that the proof need not take ten gigabytes of the host's disk.
_SMALL_FILES = replace(STANDARD, files_bytes=256 * _MIB, files_inodes=10_000)
_FILES_ROWS = ("files-fill", "files-fill-deep", "files-fill-closed", "files-fill-unlinked")
_CPU_TRIES = 2
# Variables that a host and a sandbox may well have in common.
_ORDINARY = {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "TMPDIR", "PWD", "OLDPWD", "_"}
_LEAVE_SCRATCH = """
import os, sys
canary, marker = {canary!r}, {marker!r}
for folder in ("/tmp", "/home/user", "/dev/shm"):
    open(f"{{folder}}/{{marker}}-scratch", "w").write(canary)
"""


def bounds(tier: Tier) -> dict[str, tuple[float, float]]:
    """For each attack on a limit: what must not be passed, and where the attack stops by itself."""
    roads = ("memory-bomb", "memory-bomb-unmapped", "memory-bomb-segments", "memory-bomb-files", "memory-bomb-sockets")
    return {
        **dict.fromkeys(roads, (1.3 * tier.memory_bytes, 1.4 * tier.memory_bytes)),
        "fork-bomb": (1.05 * tier.processes, 1.7 * tier.processes),
        "thread-bomb": (1.05 * tier.processes, 1.7 * tier.processes),
        "cpu-hog": (1.25 * tier.vcpus, 0),
        "cpu-affinity": (1.25 * tier.vcpus, 0),
        "open-files": (tier.open_files, 1.2 * tier.open_files),
        "scratch-fill": (tier.scratch_bytes, 1.2 * tier.scratch_bytes),
        "shm-fill": (tier.shm_bytes, 1.2 * tier.shm_bytes),
        "inode-fill": (tier.scratch_inodes, 1.05 * tier.scratch_inodes),
        **dict.fromkeys(_FILES_ROWS, (2 * _SMALL_FILES.files_bytes, 4 * _SMALL_FILES.files_bytes)),
        "files-fill-inodes": (2 * _SMALL_FILES.files_inodes, 4 * _SMALL_FILES.files_inodes),
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class _Session:
    sandbox: Sandbox
    files: Path
    packages: Path


async def prove(
    engine: Engine, image: Image, files_root: Path, *, only: Collection[str] | None = None
) -> tuple[Row, ...]:
    """Run the attacks, all or `only` those named. The engine must have been started; the caller closes it.

    Raises:
        InvalidRequest: `only` names one that does not exist.
        SandboxUnavailable: a sandbox could not be made.
    """
    attacks = all_attacks()
    if only is not None:
        if unknown := sorted(set(only) - attacks.keys()):
            raise InvalidRequest(f"no such attack: {', '.join(unknown)}")
        attacks = {name: attack for name, attack in attacks.items() if name in only}
    with laid_out(files_root) as bait:
        return await _Proof(engine, image, files_root, bait, attacks).run()


class _Proof:
    def __init__(
        self, engine: Engine, image: Image, files_root: Path, bait: Bait, attacks: Mapping[str, Attack]
    ) -> None:
        self._engine = engine
        self._files_root = files_root
        self._bait = bait
        self._attacks = attacks
        self._image = image
        self._bounds = bounds(STANDARD)
        self._controls = ControlSettings(
            image=image, variables={CANARY_VARIABLE: bait.canary}, left_open=bait.secret_file
        )
        self._inside: dict[str, Result] = {}
        self._outside: dict[str, dict[Outside, Result]] = {name: {} for name in attacks}
        self._other_folder = self._other_layout = ""

    async def run(self) -> tuple[Row, ...]:
        together = [attack for attack in self._attacks.values() if not attack.alone]
        apart = [attack for attack in self._attacks.values() if attack.alone]
        async with self._session("main") as main, self._session("other") as other:
            await self._furnish(main, other)
            inside, outside = self._given(main, other)
            if not main.sandbox.description.isolated:
                together, apart = self._spare_the_host(together), self._spare_the_host(apart)
            orders = [self._order(attack, inside) for attack in together]
            shown, _ = await asyncio.gather(
                run_inside(main.sandbox, orders), self._control(Outside.PLAIN, together, outside)
            )
            self._inside.update(shown)
            await self._control(Outside.NAMESPACES, together, outside)
            for attack in apart:
                await self._run_apart(attack, inside)
            await self._control(Outside.PLAIN, apart, outside)
            await self._control(Outside.NAMESPACES, apart, outside)
            where_inside = self._surroundings(inside=True)
            where_outside = self._surroundings(inside=False)
        return tuple(self._row(attack, where_inside, where_outside) for attack in self._attacks.values())

    def _spare_the_host(self, attacks: list[Attack]) -> list[Attack]:
        """Without walls, an attack on pid 1 would meet the machine's own."""
        spared = [attack for attack in attacks if attack.name.startswith("pid1-")]
        not_run = Result(end="not run", detail="nothing stands between it and the machine's own pid 1")
        self._inside.update(dict.fromkeys((attack.name for attack in spared), not_run))
        return [attack for attack in attacks if attack not in spared]

    @contextlib.asynccontextmanager
    async def _session(self, name: str, tier: Tier = STANDARD) -> AsyncIterator[_Session]:
        sandbox_id = new_sandbox_id()
        files = self._files_root / f"{sandbox_id}-{name}"
        # Beside the files, as in a data folder.
        packages = self._files_root.parent / "packages" / files.name
        for folder, mode in ((files, 0o700), (packages, 0o755)):
            folder.mkdir(mode=mode, parents=True)
        (packages / "installed.py").write_text("x = 1")
        try:
            spec = SandboxSpec(id=sandbox_id, tier=tier, files=files, packages=packages)
            sandbox = await self._engine.create(spec)
            try:
                yield _Session(sandbox=sandbox, files=files, packages=packages)
            finally:
                await sandbox.aclose()
        finally:
            for folder in (files, packages):
                await asyncio.to_thread(remove_tree, folder)

    async def _furnish(self, main: _Session, other: _Session) -> None:
        """The other session gets something to lose. After its creation: an engine may change owners then."""
        self._other_folder = other.files.name
        put_privileged(main.files)
        (other.files / "canary").write_text(self._bait.canary)
        code = _LEAVE_SCRATCH.format(canary=self._bait.canary, marker=self._bait.inside.marker)
        process = await other.sandbox.start(
            ProcessSpec(id=new_process_id(), entry="run_code", payload=code.encode(), cwd="/")
        )
        async for _ in process.output():
            pass
        await process.wait()
        if "shared-layout" in self._attacks:
            found = await run_inside(other.sandbox, [Order(name="shared-layout", given=Given(other_layout="?"))])
            self._other_layout = found["shared-layout"].detail

    def _given(self, main: _Session, other: _Session) -> tuple[Given, Given]:
        read_only = (self._image.python, str(Path(self._image.python).parent.parent / "pyvenv.cfg"))
        other_file = str(other.files / "canary")
        inside, outside = (
            replace(self._bait.given(inside=where), other_file=other_file, read_only=read_only,
                    image_roots=self._image.roots)
            for where in (True, False)
        )  # fmt: skip
        inside = replace(inside, hold_s=_HOLD_S, other_layout=self._other_layout)
        # The very folders that are in /mnt inside, as the host has them.
        outside = replace(outside, files=str(main.files), packages=str(main.packages))
        return inside, outside

    def _order(self, attack: Attack, given: Given) -> Order:
        if attack.judge is Judge.BOUNDED:
            given = replace(given, ceiling=self._bounds[attack.name][1])
        return Order(name=attack.name, given=given)

    async def _run_apart(self, attack: Attack, given: Given) -> None:
        tier = _SMALL_FILES if attack.name.startswith("files-fill") else STANDARD
        async with self._session("apart", tier) as session:
            self._inside.update(await run_inside(session.sandbox, [self._order(attack, given)]))

    async def _control(self, kind: Outside, attacks: list[Attack], given: Given) -> None:
        """Those that may run in this kind, and that have not succeeded in another one."""
        where = self._surroundings(inside=False)
        wanted = [
            attack
            for attack in attacks
            if kind in attack.outside
            and not any(got_through(attack, result, where) for result in self._outside[attack.name].values())
        ]
        if not wanted:
            return
        if kind is Outside.NAMESPACES:
            given = replace(given, target_pid=1)
        found = await run_outside(self._controls, kind, [self._order(attack, given) for attack in wanted])
        for attack in wanted:
            result = found[attack.name]
            # A busy host may not have had the CPUs to spare at that moment.
            for _ in range(_CPU_TRIES if attack.name.startswith("cpu-") else 0):
                if not got_through(attack, result, where):
                    order = self._order(attack, given)
                    result = (await run_outside(self._controls, kind, [order]))[attack.name]
            self._outside[attack.name][kind] = result

    def _surroundings(self, *, inside: bool) -> Surroundings:
        place = self._bait.inside if inside else self._bait.outside
        beside = (self._other_folder,)
        return Surroundings(
            canaries={
                "": (self._bait.canary,),
                "files-parent": beside,
                "backstage": beside,
                "host-name": (socket.gethostname(),),
                "environment": (self._bait.canary, *self._host_variables()) if inside else (self._bait.canary,),
            },
            seen=place.seen(),
            bounds={name: bound for name, (bound, _) in self._bounds.items()},
            grades={capability.barrier: capability.grade for capability in self._engine.capabilities},
        )

    def _host_variables(self) -> tuple[str, ...]:
        shared = _ORDINARY | {name for name, _ in self._image.env}
        return tuple(f"{name}={value}" for name, value in os.environ.items() if name not in shared and len(value) > 8)

    def _row(self, attack: Attack, inside: Surroundings, outside: Surroundings) -> Row:
        control, refusals = None, []
        for kind, result in self._outside[attack.name].items():
            if got_through(attack, result, outside):
                control = f"{kind}: {told(attack, result, through=True)}"
            else:
                refusals.append(f"{kind}: {told(attack, result, through=False)}")
        why_not = f"no control succeeds on this host ({'; '.join(refusals)})"
        return row(attack, self._inside[attack.name], inside, control, why_not)


__all__ = ["Row", "bounds", "prove", "render_json", "render_table"]
