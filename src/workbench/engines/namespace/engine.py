"""The namespace engine: zygotes, a pool of prepared slots, and the sandboxes claimed from it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

from workbench.contracts.engine import HeadStart, SandboxSpec
from workbench.engines.environment import base_environment, joined
from workbench.engines.namespace import slot as slots
from workbench.engines.namespace.ahead import AheadSlots
from workbench.engines.namespace.channel import ChannelClosed
from workbench.engines.namespace.files_watch import FilesWatch
from workbench.engines.namespace.fit import check_fit
from workbench.engines.namespace.limits.choose import Choice, choose
from workbench.engines.namespace.sandbox import NamespaceSandbox
from workbench.engines.namespace.slot import Slot
from workbench.engines.namespace.userns import make_user_namespace
from workbench.engines.namespace.view import GUEST_ROOT
from workbench.engines.namespace.warm import WARM_IDLE_S, WarmZygotes
from workbench.engines.namespace.zygote import Zygote
from workbench.engines.options import EngineOptions
from workbench.errors import InvalidRequest, IsolationTooWeak, SandboxUnavailable
from workbench.guest_trees import own_tree
from workbench.model.capability import ISOLATION, Barrier, Capability, Grade
from workbench.model.image import Image
from workbench.model.tier import STANDARD, Tier, thread_variables
from workbench_guest.messages import HOME, INSIDE_UID, PACKAGES, SCRATCH, Furnish, Prepare, Resize

WATCH_INTERVAL_S, FILES_INTERVAL_S, ZYGOTES_INTERVAL_S = 0.25, 0.25, 1.0
# Every clone of one zygote shares its address layout and hash seed, so none serves for ever.
ZYGOTE_MAX_AGE_S, ZYGOTE_MAX_CLONES = 3600.0, 5000
_PREPARE_TRIES = 3
_REFILL_DELAY_S = 0.03

_log = logging.getLogger(__name__)


class NamespaceEngine:
    """One per host."""

    name = "namespace"

    def __init__(
        self,
        options: EngineOptions,
        *,
        zygote_max_age_s: float = ZYGOTE_MAX_AGE_S,
        zygote_max_clones: int = ZYGOTE_MAX_CLONES,
        ahead_idle_s: float = WARM_IDLE_S,
    ) -> None:
        self._options = options
        self._zygote_max_age_s = zygote_max_age_s
        self._zygote_max_clones = zygote_max_clones
        self._image = options.image
        self._userns: int | None = None
        self._zygote: Zygote | None = None
        self._draining: list[Zygote] = []
        self.warm = WarmZygotes(self._current_zygote)
        """zygotes that have imported more, for those who need it"""
        self._ahead = AheadSlots(self._prepare, self._env_ahead, idle_s=ahead_idle_s)
        self._choice: Choice | None = None
        self._maps_owner = False
        self._pool: deque[Slot] = deque()
        self._live: set[NamespaceSandbox] = set()
        self._refilling: asyncio.Task[None] | None = None
        self._watching: list[asyncio.Task[None]] = []
        self._replacing = asyncio.Lock()
        self._making: set[asyncio.Task[NamespaceSandbox]] = set()
        self._closing: asyncio.Task[None] | None = None
        self._stopping = asyncio.Event()
        self._cpus = len(os.sched_getaffinity(0))
        self._files_watch = FilesWatch(options.files_root)

    async def start(self) -> None:
        """As the contract says."""
        try:
            await self._start()
        except BaseException:
            await self.aclose()
            raise

    async def _start(self) -> None:
        for folder in (self._options.files_root, self._options.packages_root):
            folder.mkdir(parents=True, exist_ok=True)
        if os.geteuid() != 0:
            try:
                self._userns = make_user_namespace()
            except OSError as problem:
                raise IsolationTooWeak(
                    f"this user may not make user namespaces: {problem.strerror}; `workbench doctor` says what to do",
                    {"step": "make a user namespace", "error": str(problem)},
                ) from problem
        zygote = await self._current_zygote()
        self._choice = choose(self._options.group_name, zygote.resident_bytes)
        self._maps_owner = await self._try_a_slot()
        self._watch()
        self._refill_soon()

    async def _try_a_slot(self) -> bool:
        """One whole life of a slot, so that what cannot work fails now. Says whether a mount can change owners."""
        slot = await self._prepare()
        trial = self._options.files_root / f"tmp-{self._options.group_name}-{slot.name}"
        trial.mkdir()
        try:
            for map_owner in [True, False] if slot.outside_uid is not None else [False]:
                try:
                    await self._furnish(slot, trial.name, None, map_owner=map_owner)
                except SandboxUnavailable as problem:
                    refused = problem
                else:
                    return map_owner
            raise IsolationTooWeak(f"files cannot be mounted: {refused.message}", {"step": "mount /mnt/files"})
        finally:
            await slot.end()
            trial.rmdir()

    @property
    def limits(self) -> Choice:
        """How limits are held, and why not better; for `doctor`."""
        assert self._choice is not None
        return self._choice

    @property
    def capabilities(self) -> tuple[Capability, ...]:
        """As the contract says. A slot came up, so each step of it worked."""
        held = [Capability(barrier=barrier, grade=Grade.ENFORCED, by="the kernel") for barrier in ISOLATION]
        if os.geteuid() == 0:
            held.append(Capability(barrier=Barrier.OWN_UID, grade=Grade.ENFORCED, by="a uid of its own"))
        else:
            held.append(Capability(barrier=Barrier.OWN_UID, grade=Grade.ABSENT, by="an ordinary user has only one"))
        return (
            *held,
            *self.limits.keeper.capabilities,
            Capability(barrier=Barrier.OPEN_FILES, grade=Grade.ENFORCED, by="RLIMIT_NOFILE"),
            Capability(barrier=Barrier.SCRATCH_DISK, grade=Grade.ENFORCED, by="tmpfs size and inodes"),
            Capability(barrier=Barrier.FILES_DISK, grade=Grade.WATCHED, by="a watchdog that measures /mnt/files"),
        )

    @property
    def pooled(self) -> int:
        """Slots that wait."""
        return len(self._pool)

    @property
    def ahead(self) -> int:
        """Slots that wait besides, in which something has begun."""
        return len(self._ahead.pids)

    async def create(self, spec: SandboxSpec) -> NamespaceSandbox:
        """As the contract says."""
        spec.checked()
        if spec.files.parent != self._options.files_root or not spec.files.is_dir():
            raise InvalidRequest(f"not a folder of {self._options.files_root}: {spec.files}")
        if spec.packages is not None and (
            spec.packages.parent != self._options.packages_root or not spec.packages.is_dir()
        ):
            raise InvalidRequest(f"not a folder of {self._options.packages_root}: {spec.packages}")
        if self._closing is not None:
            raise SandboxUnavailable("the engine is closed", {"step": "claim"})
        making = asyncio.create_task(self._make(spec), name=f"make {spec.id}")
        self._making.add(making)
        making.add_done_callback(self._making.discard)
        try:
            return await asyncio.shield(making)
        except asyncio.CancelledError:
            # Half a sandbox cannot be cleaned up by its parts: it is made to its end, and closed.
            await asyncio.wait([making])
            if not making.cancelled() and making.exception() is None:
                await making.result().aclose()
            raise

    async def _make(self, spec: SandboxSpec) -> NamespaceSandbox:
        for _ in range(_PREPARE_TRIES):
            try:
                slot = (
                    await self._ahead_slot(spec)
                    or await self._warm_slot(spec.warm)
                    or await self._pooled_slot()
                    or await self._prepare()
                )
            except IsolationTooWeak as problem:
                raise SandboxUnavailable(problem.message, problem.context) from problem
            try:
                sandbox = await self._claim(slot, spec)
            except BaseException as problem:
                # A dying process closes its channel a moment before it counts as dead.
                usable = slot.usable and not isinstance(problem.__cause__, ChannelClosed)
                await slot.end()
                # A slot that died, or whose zygote did, while we claimed it says nothing about the next one.
                if not isinstance(problem, SandboxUnavailable) or usable:
                    raise
                continue
            self._refill_soon()
            self._ahead.fill_soon()
            return sandbox
        raise SandboxUnavailable("zygotes keep dying; see the host's log", {"step": "claim"})

    async def _ahead_slot(self, spec: SandboxSpec) -> Slot | None:
        """One in which what it starts first has begun; who keeps nothing ready keeps none of these either."""
        # Without control groups, processors are given to threads one by one, and those of a program are there already.
        if not self._options.pool_size or (self.limits.keeper.watches and spec.tier != STANDARD):
            return None
        return await self._ahead.get(spec.ahead)

    def _env_ahead(self, slot: Slot, begun: HeadStart) -> dict[str, str]:
        """As for a session that says nothing: another one's differences are told when it has come."""
        threads = thread_variables(min(STANDARD.vcpus, self._cpus))
        return joined({**self._base_env(slot), **threads}, begun.env)

    def _base_env(self, slot: Slot) -> dict[str, str]:
        return base_environment(slot.zygote.image, home=HOME, scratch=SCRATCH, guest_root=GUEST_ROOT, packages=PACKAGES)

    async def _warm_slot(self, name: str) -> Slot | None:
        """One whose interpreter has imported what is wanted; none is a reason to take another, not to fail."""
        zygote = await self.warm.get(name) if name else None
        if zygote is None:
            return None
        with contextlib.suppress(SandboxUnavailable):
            return await slots.prepare(zygote, self.limits.keeper)
        return None

    async def _pooled_slot(self) -> Slot | None:
        """One that waited and can still be used. Without its zygote a slot cannot get its files any more."""
        while self._pool:
            slot = self._pool.popleft()
            if slot.usable:
                return slot
            await slot.end()
        return None

    async def _claim(self, slot: Slot, spec: SandboxSpec) -> NamespaceSandbox:
        if spec.tier != STANDARD:
            # Slots are prepared at the standard tier, which most ask for.
            slot.group.apply(spec.tier)
            await self._resize(slot, spec.tier)
        quota = await self._files_watch.begin(spec.files, spec.tier)
        await self._hand_over(spec.files, slot)
        packages = None if spec.packages is None else spec.packages.name
        await self._furnish(slot, spec.files.name, packages, map_owner=self._maps_owner)
        sandbox = NamespaceSandbox(
            spec=spec,
            slot=slot,
            limits_by=self.limits.keeper.kind,
            base_env=self._base_env(slot),
            cpus=self._cpus,
            quota=quota,
            resize=self._resize,
            look_at_files=self._look_if_changed,
            on_gone=self._live.discard,
        )
        await sandbox.open()
        self._live.add(sandbox)
        return sandbox

    async def _hand_over(self, files: Path, slot: Slot) -> None:
        """Files belong to one fixed uid on disk and are shown as the sandbox's; where that fails, given to it."""
        if slot.outside_uid is None:
            return
        owner = INSIDE_UID if self._maps_owner else slot.outside_uid
        if os.stat(files).st_uid == owner:
            return
        if not os.listdir(files):
            # New and empty, as for every sandbox without a mount: not worth a thread.
            os.chown(files, owner, owner)
            return
        # On a thread: there may be a million of them, in whatever shape an earlier guest left them.
        if not await asyncio.to_thread(own_tree, files, owner, owner):
            raise SandboxUnavailable("its files cannot be given to the sandbox", {"step": "hand over /mnt/files"})

    async def _furnish(self, slot: Slot, files: str, packages: str | None, *, map_owner: bool) -> None:
        request = Furnish(slot=slot.name, files=files, map_owner=map_owner, packages=packages)
        await slot.zygote.ask(request, (slot.descriptors[0],))

    async def _resize(self, slot: Slot, tier: Tier) -> None:
        """Any living zygote can: all of them are root in the namespace that owns the mounts."""
        _, scratch, shm, _ = slot.descriptors
        request = Resize(scratch_bytes=tier.scratch_bytes, scratch_inodes=tier.scratch_inodes, shm_bytes=tier.shm_bytes)
        check_fit(scratch, shm, tier)
        zygote = await self._current_zygote()
        try:
            await zygote.ask(request, (scratch, shm))
        except SandboxUnavailable:
            # What was written meanwhile is no fault of the zygote's.
            check_fit(scratch, shm, tier)
            raise

    async def _current_zygote(self) -> Zygote:
        async with self._replacing:
            current = self._zygote
            if current is not None and current.check() and not self._is_old(current):
                return current
            self._zygote = await self._new_zygote(self._image)
            if current is not None and current.alive:
                self._draining.append(current)
            return self._zygote

    def _is_old(self, zygote: Zygote) -> bool:
        age = time.monotonic() - zygote.started
        return age > self._zygote_max_age_s or zygote.clones > self._zygote_max_clones

    async def change_image(self, image: Image) -> None:
        """As the contract says. The old zygote drains: what it prepared is thrown away, what it made lives on."""
        fresh = await self._new_zygote(image)
        async with self._replacing:
            if self._zygote is not None and self._zygote.alive:
                self._draining.append(self._zygote)
            self._zygote, self._image = fresh, image
        await self._retire_zygotes()

    async def _new_zygote(self, image: Image) -> Zygote:
        staging = self._options.run_dir / "root"
        staging.mkdir(parents=True, exist_ok=True)
        return await Zygote.start(
            image,
            staging=staging,
            files_root=self._options.files_root,
            packages_root=self._options.packages_root,
            userns=self._userns,
        )

    async def _prepare(self) -> Slot:
        for _ in range(_PREPARE_TRIES - 1):
            zygote = await self._current_zygote()
            try:
                return await slots.prepare(zygote, self.limits.keeper)
            except SandboxUnavailable:
                if zygote.check():
                    raise
        return await slots.prepare(await self._current_zygote(), self.limits.keeper)

    def _refill_soon(self) -> None:
        if self._closing is None and (self._refilling is None or self._refilling.done()):
            self._refilling = asyncio.create_task(self._refill(), name="refill the pool")

    async def _refill(self) -> None:
        # Whoever just took a slot is about to use it; on a small machine the next one can wait that long.
        await asyncio.sleep(_REFILL_DELAY_S)
        with contextlib.suppress(SandboxUnavailable, IsolationTooWeak):
            while len(self._pool) < self._options.pool_size and self._closing is None:
                slot = await self._prepare()
                await self._prepare_entry(slot)
                self._pool.append(slot)

    async def _prepare_entry(self, slot: Slot) -> None:
        """What most sandboxes run first gets a head start. A slot that cannot is noticed when it is claimed."""
        if (entry := slot.zygote.image.entry) is not None:
            with contextlib.suppress(ChannelClosed):
                await slot.channel.send(Prepare(entry=entry))

    def _watch(self) -> None:
        """Limits that the kernel does not hold; files; slots and zygotes that have nothing left to do.

        BARRIER: each on its own, so that a guest whose files take long to count does not put off the look at its
        memory; held by tests/unit/engines/namespace/test_engine.py.
        """
        looks: tuple[tuple[float, Callable[[], Awaitable[None]]], ...] = (
            (WATCH_INTERVAL_S, self._look_at_limits),
            (FILES_INTERVAL_S, self._look_at_files),
            (ZYGOTES_INTERVAL_S, self._retire_zygotes),
        )
        self._watching = [asyncio.create_task(self._every(*look), name=look[1].__name__) for look in looks]

    async def _every(self, interval_s: float, look: Callable[[], Awaitable[None]]) -> None:
        """Ends at `_stopping` and not by being cancelled, which could be in the middle of freeing something."""
        while True:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), interval_s)
                return
            try:
                await look()
            except Exception:  # noqa: BLE001  whatever it was, limits must go on being watched
                # BARRIER: a guest that makes one look fail must not be rid of the next; held by
                # tests/unit/engines/namespace/test_engine.py.
                _log.exception("a look at the sandboxes failed; the next one follows")

    async def _look_at_limits(self) -> None:
        if self.limits.keeper.watches:
            for sandbox in list(self._live):
                # BARRIER: what is only stopped can have a timer send it the signal to go on, and is not rid of its
                # limits by being called frozen; held by tests/host/test_freezing.py.
                sandbox.stay_frozen()
                if (reason := sandbox.slot.group.watch()) is not None:
                    sandbox.end_soon(reason)

    async def _look_at_files(self) -> None:
        for sandbox, reason in await self._files_watch.look(self._while_running()):
            sandbox.end_soon(reason)

    async def _look_if_changed(self, sandbox: NamespaceSandbox) -> None:
        """For who wants to know now what the next look would find."""
        if sandbox.quota.over is None and not self._files_watch.may_be_fuller():
            return
        reason = await self._files_watch.look_at(sandbox)
        if sandbox.quota.is_far and not reason:
            # The next look would end it: nobody is told to tidy up who will not come to it.
            await asyncio.sleep(FILES_INTERVAL_S)
            reason = await self._files_watch.look_at(sandbox)
        if reason:
            sandbox.end_soon(reason)

    def _while_running(self) -> Iterator[NamespaceSandbox]:
        """Those that live, and none any more once the engine closes: one with many files takes seconds to look at."""
        for sandbox in list(self._live):
            if sandbox in self._live and not self._stopping.is_set():
                yield sandbox

    async def _retire_zygotes(self) -> None:
        """An old zygote goes also when nobody asks for anything, and with it what it has prepared."""
        current = await self._current_zygote()
        stale = [slot for slot in self._pool if slot.zygote is not current or not slot.usable]
        for slot in stale:
            self._pool.remove(slot)
        for slot in stale:
            await slot.end()
        self.warm.retire(current, self._is_old)
        await self._ahead.retire(current)
        if len(self._pool) < self._options.pool_size:
            self._refill_soon()
        while self._draining:
            self._draining.pop().end()

    async def aclose(self) -> None:
        """As the contract says."""
        if self._closing is None:
            self._closing = asyncio.create_task(self._close(), name="close the engine")
        await asyncio.shield(self._closing)

    async def _close(self) -> None:
        self._stopping.set()
        if unfinished := {*self._making, *self._watching, *filter(None, (self._refilling,))}:
            await asyncio.wait(unfinished)
        await asyncio.gather(*(sandbox.aclose() for sandbox in list(self._live)))
        await self._files_watch.aclose()
        for slot in self._pool:
            slot.kill()
        await asyncio.gather(*(slot.end() for slot in self._pool))
        self._pool.clear()
        await self._ahead.aclose()
        await self.warm.aclose()
        for zygote in (*self._draining, self._zygote):
            if zygote is not None:
                zygote.end()
        if self._choice is not None:
            self._choice.keeper.close()
        if self._userns is not None:
            os.close(self._userns)
