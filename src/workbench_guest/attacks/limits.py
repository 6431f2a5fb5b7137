"""Taking more than the tier has of processes, threads, CPU, descriptors and disk. Every one stops by itself."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import threading
import time

from workbench_guest.attacks.registry import Given, Judge, Measured, Outside, Refused, attack

_HOST = (Outside.PLAIN,)
_MIB = 1 << 20
_BURN_S = 1.2
_NEW = os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC
_DEEP = 1500


def _raise_soft_limit(which: int) -> None:
    """What any process may do to itself, so an attack does it first."""
    hard = resource.getrlimit(which)[1]
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(which, (hard, hard))


@attack("fork-bomb", "start more processes than the tier has", judge=Judge.BOUNDED, outside=_HOST, alone=True,
        time_limit_s=30.0)  # fmt: skip
def fork_bomb(given: Given) -> Measured:
    """All of them alive at once."""
    _raise_soft_limit(resource.RLIMIT_NPROC)
    children: list[int] = []
    ended = False
    try:
        while len(children) < given.ceiling:
            try:
                pid = os.fork()
            except OSError:
                ended = True
                break
            if pid == 0:
                while True:
                    signal.pause()
            children.append(pid)
        if not ended:
            time.sleep(given.hold_s)
    finally:
        for pid in children:
            os.kill(pid, signal.SIGKILL)
        for pid in children:
            os.waitpid(pid, 0)
    return Measured(amount=len(children), detail=f"{len(children)} processes", ended=ended)


@attack("thread-bomb", "start more threads than the tier has", judge=Judge.BOUNDED, outside=_HOST, alone=True,
        time_limit_s=30.0)  # fmt: skip
def thread_bomb(given: Given) -> Measured:
    """They end with this process."""
    _raise_soft_limit(resource.RLIMIT_NPROC)
    threading.stack_size(64 * 1024)
    over = threading.Event()
    count, ended = 0, False
    while count < given.ceiling:
        try:
            threading.Thread(target=over.wait, daemon=True).start()
        except RuntimeError:
            ended = True
            break
        count += 1
    if not ended:
        time.sleep(given.hold_s)
    over.set()
    return Measured(amount=count, detail=f"{count} threads", ended=ended)


def _burn() -> Measured:
    workers = 4 * (os.cpu_count() or 1)
    began = time.monotonic()
    pids = []
    for _ in range(workers):
        pid = os.fork()
        if pid == 0:
            # The scheduler shares the machine out by session; they end by themselves.
            os.setsid()
            while time.monotonic() < began + _BURN_S:
                sum(range(1000))
            os._exit(0)
        pids.append(pid)
    spent = 0.0
    for pid in pids:
        usage = os.wait4(pid, 0)[2]
        spent += usage.ru_utime + usage.ru_stime
    share = spent / (time.monotonic() - began)
    return Measured(amount=share, detail=f"{share:.2f} CPUs", ended=False)


@attack("cpu-hog", "use more CPU than the tier has", judge=Judge.BOUNDED, outside=_HOST, alone=True, time_limit_s=20.0)
def cpu_hog(_given: Given) -> Measured:
    """Four times as many busy processes as the machine has CPUs."""
    return _burn()


@attack("cpu-affinity", "spread over all CPUs, and use more than the tier has", judge=Judge.BOUNDED, outside=_HOST,
        alone=True, time_limit_s=20.0)  # fmt: skip
def cpu_affinity(_given: Given) -> Measured:
    """The mask matters where it is what holds the cap."""
    os.sched_setaffinity(0, range(os.cpu_count() or 1))
    return _burn()


@attack("open-files", "open more files than the tier has", judge=Judge.BOUNDED, outside=_HOST)
def open_files(given: Given) -> Measured:
    """One file, many descriptors."""
    _raise_soft_limit(resource.RLIMIT_NOFILE)
    opened = [os.open("/dev/null", os.O_RDONLY)]
    ended = False
    try:
        while len(opened) < given.ceiling:
            opened.append(os.dup(opened[0]))
    except OSError:
        ended = True
    for descriptor in opened:
        os.close(descriptor)
    return Measured(amount=len(opened), detail=f"{len(opened)} descriptors", ended=ended)


def _fill(folder: str, given: Given) -> Measured:
    path = f"{folder}/{given.marker}-fill"
    block = b"\xa5" * _MIB
    written, ended = 0, False
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    try:
        while written < given.ceiling:
            written += os.write(descriptor, block)
    except OSError:
        ended = True
    finally:
        os.close(descriptor)
        os.unlink(path)
    return Measured(amount=written, detail=f"{written // _MIB} MiB", ended=ended)


@attack("scratch-fill", "write more to /tmp and home than the tier has", judge=Judge.BOUNDED, outside=_HOST, alone=True,
        time_limit_s=40.0)  # fmt: skip
def scratch_fill(given: Given) -> Measured:
    """Both are one file system."""
    return _fill(given.folder, given)


@attack("shm-fill", "write more to /dev/shm than the tier has", judge=Judge.BOUNDED, outside=_HOST, alone=True,
        time_limit_s=40.0)  # fmt: skip
def shm_fill(given: Given) -> Measured:
    """The same for shared memory."""
    return _fill(given.shm, given)


@attack("inode-fill", "make more files than the tier has", judge=Judge.BOUNDED, outside=_HOST, alone=True,
        time_limit_s=60.0)  # fmt: skip
def inode_fill(given: Given) -> Measured:
    """Empty ones, which cost no bytes."""
    return _make_files(f"{given.folder}/{given.marker}-inodes", given)


def _make_files(folder: str, given: Given) -> Measured:
    os.mkdir(folder)
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    made, ended = 0, False
    try:
        while made < given.ceiling:
            os.mknod(str(made), dir_fd=handle)
            made += 1
        time.sleep(given.hold_s)
    except OSError:
        ended = True
    finally:
        for number in range(made):
            os.unlink(str(number), dir_fd=handle)
        os.close(handle)
        os.rmdir(folder)
    return Measured(amount=made, detail=f"{made} files", ended=ended)


@attack("files-fill", "keep more in /mnt/files than the tier has", judge=Judge.BOUNDED, outside=_HOST, alone=True,
        time_limit_s=30.0)  # fmt: skip
def files_fill(given: Given) -> Measured:
    """As one file with a name."""
    _check_free_disk(given)
    path = f"{given.files}/{given.marker}-fill"
    try:
        return _keep(os.open(path, _NEW, 0o600), given)
    finally:
        os.unlink(path)


@attack("files-fill-unlinked", "keep more in /mnt/files than the tier has, in a file without a name",
        judge=Judge.BOUNDED, outside=_HOST, alone=True, time_limit_s=30.0)  # fmt: skip
def files_fill_unlinked(given: Given) -> Measured:
    """No folder shows it, and it is gone only when it is closed."""
    _check_free_disk(given)
    path = f"{given.files}/{given.marker}-unlinked"
    descriptor = os.open(path, _NEW, 0o600)
    os.unlink(path)
    return _keep(descriptor, given)


@attack("files-fill-closed", "keep more in /mnt/files than the tier has, in a folder that nobody may enter",
        judge=Judge.BOUNDED, outside=_HOST, alone=True, time_limit_s=30.0)  # fmt: skip
def files_fill_closed(given: Given) -> Measured:
    """Where the host is an ordinary user, it may not enter either."""
    _check_free_disk(given)
    folder = f"{given.files}/{given.marker}-closed"
    os.mkdir(folder)
    try:
        descriptor = os.open(f"{folder}/fill", _NEW, 0o600)
        os.chmod(folder, 0)
        return _keep(descriptor, given)
    finally:
        os.chmod(folder, 0o700)
        os.unlink(f"{folder}/fill")
        os.rmdir(folder)


@attack("files-fill-deep", "keep more in /mnt/files than the tier has, below more folders than a path can name",
        judge=Judge.BOUNDED, outside=_HOST, alone=True, time_limit_s=30.0)  # fmt: skip
def files_fill_deep(given: Given) -> Measured:
    """Deeper also than Python recurses."""
    _check_free_disk(given)
    name = f"{given.marker}-deep"
    folder = os.open(given.files, os.O_RDONLY | os.O_CLOEXEC)
    try:
        for _ in range(_DEEP):
            os.mkdir(name, dir_fd=folder)
            folder = _moved(folder, name)
        descriptor = os.open("fill", _NEW, 0o600, dir_fd=folder)
        try:
            return _keep(descriptor, given)
        finally:
            os.unlink("fill", dir_fd=folder)
            for _ in range(_DEEP):
                folder = _moved(folder, "..")
                os.rmdir(name, dir_fd=folder)
    finally:
        os.close(folder)


def _moved(folder: int, name: str) -> int:
    there = os.open(name, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder)
    os.close(folder)
    return there


def _check_free_disk(given: Given) -> None:
    space = os.statvfs(given.files)
    if space.f_bavail * space.f_frsize < 4 * given.ceiling:
        raise Refused("too little disk is free to try")


def _keep(descriptor: int, given: Given) -> Measured:
    """Real blocks, but none of them written; kept long enough for a watchdog to look. Closes `descriptor`."""
    taken, ended = 0, False
    try:
        while taken < given.ceiling:
            os.posix_fallocate(descriptor, taken, 64 * _MIB)
            taken += 64 * _MIB
        time.sleep(given.hold_s)
    except OSError:
        ended = True
    finally:
        os.close(descriptor)
    return Measured(amount=taken, detail=f"{taken // _MIB} MiB kept", ended=ended)


@attack("files-fill-inodes", "keep more files in /mnt/files than the tier has", judge=Judge.BOUNDED, outside=_HOST,
        alone=True, time_limit_s=60.0)  # fmt: skip
def files_fill_inodes(given: Given) -> Measured:
    """Empty ones; a disk that is out of them is full for everyone."""
    space = os.statvfs(given.files)
    if space.f_favail < 4 * given.ceiling:
        raise Refused("this disk does not count its files, or has too few left to try")
    return _make_files(f"{given.files}/{given.marker}-inodes", given)
