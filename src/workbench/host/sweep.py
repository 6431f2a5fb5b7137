"""Cleaning up after a host that died: its processes, control groups, folders; and saying what was lost with it.

The kernel has ended its sandboxes by then (they die with their parent). Run by the guardian at once, and by the next
host in case the guardian was killed as well. Imports little: the guardian should stay small.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import time
from pathlib import Path

from workbench.data_folder import DataFolder, RunFolder
from workbench.engines import proc
from workbench.engines.environment import SANDBOX_VARIABLE
from workbench.guest_trees import remove_tree
from workbench.host.journal import Made, now, unfinished
from workbench.host.losses import Loss, add_losses

_GONE_TIMEOUT_S, _PAUSE_S = 10.0, 0.02
_log = logging.getLogger(__name__)


def sweep(data: DataFolder, run: RunFolder) -> list[Made]:
    """Clean up after one dead host, whose lock the caller holds. Returns what was lost with it."""
    lost = unfinished(run.journal)
    for made in lost:
        _kill_recorded(made)
    # Processes of an engine without a pid 1 carry their sandbox's id in their environment.
    for made in lost:
        if made.pid is None:
            proc.kill_marked(f"{SANDBOX_VARIABLE}={made.sandbox}".encode())
    _remove_groups(run.group_name)
    add_losses(data.losses, [Loss(sandbox=made.sandbox, host=run.host, when=now()) for made in lost])
    for folder in data.files.glob(f"{run.ephemeral_prefix}*"):
        remove_tree(folder)
    with contextlib.suppress(OSError):
        if os.readlink(data.socket) == os.path.relpath(run.socket, data.path):
            data.socket.unlink()
    remove_tree(run.path)
    return lost


def sweep_all(data: DataFolder) -> None:
    """Clean up after every host that is dead. One that cannot be cleaned up keeps no other from starting."""
    for run in data.run_folders():
        lock = run.lock()
        if lock is not None:
            try:
                sweep(data, run)
            except OSError:
                _log.exception("could not clean up after host %s", run.host)
            finally:
                os.close(lock)


def _kill_recorded(made: Made) -> None:
    # The start time must match: the number may belong to someone else by now.
    if made.pid is not None and made.started is not None and proc.start_time(made.pid) == made.started:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(made.pid, signal.SIGKILL)


def _remove_groups(name: str) -> None:
    """In every hierarchy: kill, wait, remove."""
    tops = group_folders(name, _group_mounts())
    # All of them first: on v1 what is frozen in one hierarchy does not end, and keeps its groups in the others.
    for top in tops:
        for folder, _, _ in os.walk(top):
            _thaw(Path(folder))
    for top in tops:
        _step_out(top)
        deadline = time.monotonic() + _GONE_TIMEOUT_S
        while top.is_dir() and time.monotonic() < deadline:
            for folder, _, _ in os.walk(top, topdown=False):
                _kill_members(Path(folder))
                with contextlib.suppress(OSError):
                    os.rmdir(folder)
            if top.is_dir():
                time.sleep(_PAUSE_S)


def _group_mounts() -> list[str]:
    lines = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [where for _, where, kind, *_ in lines if kind in ("cgroup", "cgroup2")]


def group_folders(name: str, hierarchies: list[str]) -> list[Path]:
    """The group of that name in each hierarchy, wherever in it the dead host was started."""
    found: dict[Path, None] = {}
    for top in hierarchies:
        # `walk`, not `glob`: groups of others come and go meanwhile, and what vanishes is passed over.
        for folder, folders, _ in os.walk(top):
            if name in folders:
                found[Path(folder, name)] = None
            folders[:] = [child for child in folders if child != name]
    return list(found)


def _step_out(top: Path) -> None:
    """We may be in the leaf that we are about to remove."""
    with contextlib.suppress(OSError):
        if str(os.getpid()) in (top / "host" / "cgroup.procs").read_text().split():
            # A divided group holds no process, so the parent is made whole again first; the very top has no type.
            for group in (top, top.parent):
                if (group / "cgroup.type").exists():
                    (group / "cgroup.subtree_control").write_text("-memory -cpu -pids")
            (top.parent / "cgroup.procs").write_text(str(os.getpid()))


def _thaw(folder: Path) -> None:
    for switch, off in (("freezer.state", "THAWED"), ("cgroup.freeze", "0")):
        with contextlib.suppress(OSError):
            descriptor = os.open(folder / switch, os.O_WRONLY | os.O_CLOEXEC)
            try:
                os.write(descriptor, off.encode())
            finally:
                os.close(descriptor)


def _kill_members(folder: Path) -> None:
    with contextlib.suppress(OSError):
        for pid in (folder / "cgroup.procs").read_text().split():
            if int(pid) not in (0, os.getpid()):
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(int(pid), signal.SIGKILL)
