"""The file system a sandbox sees: built once by the zygote, completed by each sandbox with what is its own.

Building it once is what makes a sandbox cheap: a clone into a new mount namespace copies the finished tree. Who the
sandbox is and what it may call is left to `identity`.
"""

from __future__ import annotations

import contextlib
import os
import stat

from workbench_guest.confine import syscalls as sys_
from workbench_guest.messages import FILES, HOME, INSIDE_UID, SCRATCH, SHM, SlotPlan, ZygotePlan

# What the zygote needs and no sandbox may see; each sandbox detaches it first of all.
BACKSTAGE = "/.workbench"
BACKSTAGE_FILES, BACKSTAGE_SLOTS = f"{BACKSTAGE}/files", f"{BACKSTAGE}/slots"
BACKSTAGE_PACKAGES = f"{BACKSTAGE}/packages"
BACKSTAGE_PROC, BACKSTAGE_SCRATCH, BACKSTAGE_EMPTY = f"{BACKSTAGE}/proc", f"{BACKSTAGE}/scratch", f"{BACKSTAGE}/empty"
_FOLDERS = (
    "/proc", "/sys", "/dev", "/dev/pts", SHM, "/run", SCRATCH, "/var/tmp", "/home", HOME, "/mnt", BACKSTAGE,
)  # fmt: skip
_BACKSTAGE_FOLDERS = (BACKSTAGE_FILES, BACKSTAGE_PACKAGES, BACKSTAGE_SLOTS, BACKSTAGE_PROC, BACKSTAGE_SCRATCH)
_OF_A_SLOT = ("files", "packages")
# BARRIER: these files of /proc tell about the host, not about the sandbox; held by the `proc-*` rows of the proof.
_MASKED_FILES = ("keys", "key-users", "kcore", "kallsyms", "kmsg", "timer_list", "sched_debug", "sysrq-trigger",
                 "latency_stats", "kpagecount", "kpageflags", "kpagecgroup", "config.gz", "vmallocinfo", "cmdline",
                 "interrupts", "softirqs", "iomem", "ioports", "modules")  # fmt: skip
_MASKED_FOLDERS = ("acpi", "scsi", "driver", "fs", "irq", "bus", "tty", "sysvipc")
_QUIET = sys_.MS_NOSUID | sys_.MS_NODEV


def build(plan: ZygotePlan) -> None:
    """Make this process's root the one that all its sandboxes start from. Needs a mount namespace of its own."""
    sys_.mount(None, "/", None, sys_.MS_REC | sys_.MS_PRIVATE)
    new = plan.staging
    sys_.mount("tmpfs", new, "tmpfs", _QUIET, "mode=0755,size=4m")
    for folder in _FOLDERS:
        os.makedirs(new + folder, exist_ok=True)
    for bind in plan.binds:
        _bind_read_only(bind.source, new + bind.target)
    for points_to, where in plan.links:
        os.makedirs(os.path.dirname(new + where), exist_ok=True)
        os.symlink(points_to, new + where)
    for path, content in plan.texts:
        os.makedirs(os.path.dirname(new + path), exist_ok=True)
        _write_new(new + path, content)
    for device in plan.devices:
        _write_new(new + device, "")
        sys_.mount(device, new + device, None, sys_.MS_BIND)
        sys_.mount(None, new + device, None, sys_.MS_REMOUNT | sys_.MS_BIND | sys_.MS_NOSUID | sys_.MS_NOEXEC)
    for points_to, where in (("/proc/self/fd", "fd"), ("fd/0", "stdin"), ("fd/1", "stdout"), ("fd/2", "stderr"),
                             ("pts/ptmx", "ptmx")):  # fmt: skip
        os.symlink(points_to, f"{new}/dev/{where}")
    _build_backstage(new, plan)
    os.chmod(new + "/var/tmp", 0o1777)  # noqa: S103  what /var/tmp is everywhere; it lies on the read-only root
    os.chdir(new)
    sys_.pivot_root(".", ".")
    sys_.unmount(".", sys_.MNT_DETACH)
    os.chdir("/")
    # Only the mount is read-only; the file system stays writable for nobody, as no other mount of it exists.
    sys_.mount(None, "/", None, sys_.MS_REMOUNT | sys_.MS_BIND | sys_.MS_RDONLY | _QUIET)


def _build_backstage(new: str, plan: ZygotePlan) -> None:
    # A mount of its own, so that one unmount takes it all away.
    sys_.mount("tmpfs", new + BACKSTAGE, "tmpfs", _QUIET, "mode=0700,size=4m")
    for folder in _BACKSTAGE_FOLDERS:
        os.mkdir(new + folder)
    # A user namespace may mount a fresh /proc only while a complete one is in sight.
    sys_.mount("/proc", new + BACKSTAGE_PROC, None, sys_.MS_BIND | sys_.MS_REC)
    sys_.mount(plan.files_root, new + BACKSTAGE_FILES, None, sys_.MS_BIND)
    sys_.mount(plan.packages_root, new + BACKSTAGE_PACKAGES, None, sys_.MS_BIND)
    _write_new(new + BACKSTAGE_EMPTY, "")
    os.chmod(new + BACKSTAGE_EMPTY, 0)
    # Shared, so that a mount made here later appears in the one sandbox whose slot it is for.
    sys_.mount("tmpfs", new + BACKSTAGE_SLOTS, "tmpfs", _QUIET, "mode=0755,size=4m")
    sys_.mount(None, new + BACKSTAGE_SLOTS, None, sys_.MS_SHARED)


def _bind_read_only(source: str, target: str) -> None:
    if stat.S_ISDIR(os.stat(source).st_mode):
        os.makedirs(target, exist_ok=True)
    else:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        _write_new(target, "")
    sys_.mount(source, target, None, sys_.MS_BIND)
    kept = os.statvfs(target).f_flag & (os.ST_NOEXEC | os.ST_NODEV | os.ST_NOSUID)
    # A user namespace may not take away flags that the host's mount already has.
    sys_.mount(None, target, None, sys_.MS_REMOUNT | sys_.MS_BIND | sys_.MS_RDONLY | _QUIET | kept)


def _write_new(path: str, content: str) -> None:
    with open(path, "x", encoding="utf-8") as file:
        file.write(content)


def add_slot(slot: str) -> None:
    """In the zygote, before the clone: the places where this slot's files and packages will appear."""
    for name in _OF_A_SLOT:
        os.makedirs(f"{BACKSTAGE_SLOTS}/{slot}/{name}")


def attach_files(slot: str, files: str, userns: int | None) -> None:
    """In the zygote: bind a folder of the host's into the slot; it propagates into the sandbox, with its flags."""
    tree = sys_.clone_tree(f"{BACKSTAGE_FILES}/{files}")
    try:
        # BARRIER: a setuid file or a device node written to the mount must mean nothing; held by the proof's
        # `files-setuid` and `files-device` rows.
        sys_.set_mount_attributes(tree, sys_.MOUNT_ATTR_NOSUID | sys_.MOUNT_ATTR_NODEV)
        if userns is not None:
            sys_.set_mount_attributes(tree, sys_.MOUNT_ATTR_IDMAP, userns)
        sys_.attach_tree(tree, f"{BACKSTAGE_SLOTS}/{slot}/files")
    finally:
        os.close(tree)


def attach_packages(slot: str, packages: str) -> None:
    """In the zygote: bind a folder of packages into the slot; what is installed into it later is seen at once."""
    tree = sys_.clone_tree(f"{BACKSTAGE_PACKAGES}/{packages}")
    try:
        # BARRIER: its files are shared with the installer's store, by hard links: who could write one would change it
        # for every session; held by the proof's `packages-write` row.
        sys_.set_mount_attributes(tree, sys_.MOUNT_ATTR_RDONLY | sys_.MOUNT_ATTR_NOSUID | sys_.MOUNT_ATTR_NODEV)
        sys_.attach_tree(tree, f"{BACKSTAGE_SLOTS}/{slot}/packages")
    finally:
        os.close(tree)


def forget_slot(slot: str) -> None:
    """In the zygote: drop its own copy of the slot's mounts. May be called twice."""
    folder = f"{BACKSTAGE_SLOTS}/{slot}"
    for name in _OF_A_SLOT:
        with contextlib.suppress(OSError):
            sys_.unmount(f"{folder}/{name}", sys_.MNT_DETACH)
    with contextlib.suppress(FileNotFoundError):
        for name in _OF_A_SLOT:
            os.rmdir(f"{folder}/{name}")
        os.rmdir(folder)


def complete(plan: SlotPlan) -> tuple[int, int, int]:
    """In the sandbox: mount what is its own. Returns descriptors of a writable /proc, of scratch and of shm."""
    # Slave, not private: files attached in the zygote must arrive here, and nothing may go the other way.
    sys_.mount(None, "/", None, sys_.MS_REC | sys_.MS_SLAVE)
    owner = "" if plan.outside_uid is None else f",uid={plan.outside_uid},gid={plan.outside_uid}"
    scratch = _mount_scratch(plan, owner)
    sys_.mount("tmpfs", SHM, "tmpfs", _QUIET | sys_.MS_NOEXEC,
               f"mode=1777,size={plan.shm_bytes},nr_inodes={plan.scratch_inodes}{owner}")  # fmt: skip
    # Terminals are numbered for the whole machine: without a maximum one sandbox could take them all.
    sys_.mount(
        "devpts", "/dev/pts", "devpts", sys_.MS_NOSUID | sys_.MS_NOEXEC, "newinstance,ptmxmode=0666,mode=0620,max=64"
    )
    sys_.mount(f"{BACKSTAGE_SLOTS}/{plan.slot}", "/mnt", None, sys_.MS_BIND)
    sys_.mount(None, "/mnt", None, sys_.MS_REMOUNT | sys_.MS_BIND | sys_.MS_RDONLY | _QUIET)
    proc = _mount_proc()
    # BARRIER: backstage holds every session's files; held by the proof's `backstage` row.
    sys_.unmount(BACKSTAGE, sys_.MNT_DETACH)
    os.chdir("/")
    return proc, scratch, os.open(SHM, os.O_PATH | os.O_CLOEXEC)


def _mount_scratch(plan: SlotPlan, owner: str) -> int:
    """Home and /tmp are two folders of one tmpfs, so that they share one budget."""
    sys_.mount("tmpfs", BACKSTAGE_SCRATCH, "tmpfs", _QUIET,
               f"mode=0755,size={plan.scratch_bytes},nr_inodes={plan.scratch_inodes}{owner}")  # fmt: skip
    for folder, mode, target in (("home", 0o755, HOME), ("tmp", 0o1777, SCRATCH), ("tmp", 0o1777, "/var/tmp")):
        path = f"{BACKSTAGE_SCRATCH}/{folder}"
        with contextlib.suppress(FileExistsError):
            os.mkdir(path)
            os.chmod(path, mode)
            if plan.outside_uid is not None:
                os.chown(path, plan.outside_uid, plan.outside_uid)
        sys_.mount(path, target, None, sys_.MS_BIND)
    return os.open(BACKSTAGE_SCRATCH, os.O_PATH | os.O_CLOEXEC)


def _mount_proc() -> int:
    """A masked, read-only /proc; returns a handle on the writable one below it, for as long as set-up lasts."""
    sys_.mount("proc", "/proc", "proc", _QUIET | sys_.MS_NOEXEC)
    writable = os.open("/proc", os.O_PATH | os.O_CLOEXEC)
    sys_.mount("/proc", "/proc", None, sys_.MS_BIND)
    for name in _MASKED_FILES:
        if os.path.exists(f"/proc/{name}"):
            sys_.mount(BACKSTAGE_EMPTY, f"/proc/{name}", None, sys_.MS_BIND)
    for name in _MASKED_FOLDERS:
        if os.path.isdir(f"/proc/{name}"):
            sys_.mount("tmpfs", f"/proc/{name}", "tmpfs", sys_.MS_RDONLY | _QUIET, "size=4k,mode=0555")
    sys_.mount(None, "/proc", None, sys_.MS_REMOUNT | sys_.MS_BIND | sys_.MS_RDONLY | _QUIET | sys_.MS_NOEXEC)
    return writable


def resize(descriptor: int, size: int, inodes: int) -> None:
    """In the zygote: give a sandbox's tmpfs another size while it is in use."""
    sys_.reconfigure(descriptor, {"size": str(size), "nr_inodes": str(inodes)})


__all__ = [
    "BACKSTAGE",
    "FILES",
    "INSIDE_UID",
    "add_slot",
    "attach_files",
    "attach_packages",
    "build",
    "complete",
    "forget_slot",
    "resize",
]
