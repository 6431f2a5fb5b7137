"""What a host holds: descriptors, processes, control groups, mounts, folders, sockets; before and after."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass
from pathlib import Path

from workbench.data_folder import GROUP_PREFIX, DataFolder
from workbench.engines.namespace.files_watch import MOST_THREADS

# The main one, two of zmq's, and as many workers as asyncio's pool and the looks at files start, one by one, when they
# are needed.
_MOST_THREADS = 3 + min(32, (os.cpu_count() or 1) + 4) + MOST_THREADS


@dataclass(frozen=True, slots=True)
class Holdings:
    """Counts of one host with no sandbox and a full pool."""

    descriptors: int
    threads: int
    """or as many as the host's own pool of them may have, if that is more"""
    processes: int
    control_groups: int
    mounts: int
    """that its zygote has"""
    folders_of_files: int
    entries_of_its_folder: int
    """sockets, spools and folders of kernels among them"""

    def more_than(self, before: Holdings) -> list[str]:
        """What there is more of, in words."""
        then = asdict(before)
        return [f"{name}: {then[name]} before, {now} after" for name, now in asdict(self).items() if now > then[name]]


def holdings(pid: int, host: str, data: DataFolder) -> Holdings:
    """Of the host with this pid and id."""
    below = descendants(pid)
    return Holdings(
        descriptors=len(os.listdir(f"/proc/{pid}/fd")),
        threads=max(_MOST_THREADS, len(os.listdir(f"/proc/{pid}/task"))),
        processes=len(below),
        control_groups=len(groups(host)),
        mounts=max((len(content_of(f"/proc/{one}/mountinfo").splitlines()) for one in _zygotes(below)), default=0),
        folders_of_files=len(os.listdir(data.files)),
        entries_of_its_folder=sum(len(folders) + len(files) for _, folders, files in os.walk(data.hosts / host)),
    )


def resident_mib(pid: int) -> float:
    """Of one process."""
    return int(content_of(f"/proc/{pid}/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def descendants(pid: int) -> list[int]:
    """Every process below this one."""
    found, queue = [], [pid]
    while queue:
        one = queue.pop()
        for thread in threads_of(one):
            for child in content_of(f"/proc/{one}/task/{thread}/children").split():
                found.append(int(child))
                queue.append(int(child))
    return found


def groups(host: str) -> list[str]:
    """Control groups that carry the host's name."""
    return [folder for folder, _, _ in os.walk("/sys/fs/cgroup") if f"{GROUP_PREFIX}{host}" in folder]


def is_alive(pid: int) -> bool:
    """Zombies are not."""
    stat = content_of(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    return bool(stat) and stat[0] != b"Z"


def left_behind(host: str, pids: list[int], data: DataFolder) -> list[str]:
    """What is still there of a host that has stopped."""
    left = [f"process {pid}: {content_of(f'/proc/{pid}/cmdline')!r}" for pid in pids if is_alive(pid)]
    left += [f"control group {group}" for group in groups(host)]
    left += [f"folder {path.name}" for path in (*data.hosts.iterdir(), *data.files.iterdir())]
    mark = str(data.path).encode()
    holders = [name for name in os.listdir("/proc") if name.isdigit() and mark in content_of(f"/proc/{name}/mountinfo")]
    return left + [f"a mount in the view of process {name}" for name in holders]


def _zygotes(pids: list[int]) -> list[int]:
    return [pid for pid in pids if b"workbench_guest.zygote" in content_of(f"/proc/{pid}/cmdline")]


def threads_of(pid: int) -> list[str]:
    """By their numbers; none if it is gone."""
    try:
        return os.listdir(f"/proc/{pid}/task")
    except OSError:
        return []


def content_of(path: str) -> bytes:
    """Nothing, for a file that is gone."""
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
