"""Files that are not the sandbox's: the system's, the host's, other sessions'; and files that mean more than data."""

from __future__ import annotations

import errno
import functools
import os
import stat
import subprocess
import time

from workbench_guest.attacks.registry import Attack, Given, Judge, Outside, Refused, attack, register
from workbench_guest.confine.root import BACKSTAGE

_HOST = (Outside.PLAIN,)
_SYSTEM = {"root": "/", "usr": "/usr", "etc": "/etc", "dev": "/dev", "mnt": "/mnt", "run": "/run", "sys": "/sys",
           "lib": "/usr/lib"}  # fmt: skip
_DEVICES = {
    "mem": ("/dev/mem", "the machine's memory"), "kmsg": ("/dev/kmsg", "the kernel's log"),
    "kvm": ("/dev/kvm", "the hypervisor"), "fuse": ("/dev/fuse", "file systems of one's own"),
    "tun": ("/dev/net/tun", "network interfaces of one's own"), "loop": ("/dev/loop-control", "disks of one's own"),
    "console": ("/dev/console", "the machine's console"), "vhost": ("/dev/vhost-vsock", "the hypervisor's network"),
}  # fmt: skip
_NULL_DEVICE = os.makedev(1, 3)
_NOBODY = 65534
_PATIENCE_S = 0.6


def _create(folder: str, given: Given) -> str:
    try:
        # A file without a name: nothing to clean up.
        os.close(os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600))
    except OSError as problem:
        if problem.errno not in (errno.EOPNOTSUPP, errno.EISDIR):
            raise
        path = f"{folder}/{given.marker}-{os.getpid()}"
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600))
        os.unlink(path)
    return f"a file in {folder}"


def _open_device(path: str, _given: Given) -> str:
    os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC))
    return f"{path} is open"


for _name, _folder in _SYSTEM.items():
    if _name != "sys":
        register(Attack(name=f"write-{_name}", description=f"create a file in {_folder}",
                        run=functools.partial(_create, _folder)))  # fmt: skip
for _name, (_path, _what) in _DEVICES.items():
    register(Attack(name=f"device-{_name}", description=f"open {_what}", outside=_HOST,
                    run=functools.partial(_open_device, _path)))  # fmt: skip


@attack("device-disk", "open a disk of the host's", outside=_HOST)
def disk(given: Given) -> str:
    """Whatever block device is in /dev."""
    for name in sorted(os.listdir("/dev"), key=lambda name: name.startswith("loop")):
        if stat.S_ISBLK(os.lstat(f"/dev/{name}").st_mode):
            return _open_device(f"/dev/{name}", given)
    raise Refused("no disk in /dev")


@attack("mknod", "make a device in a folder of one's own")
def mknod(given: Given) -> str:
    """A second /dev/null stands in for a disk."""
    path = f"{given.folder}/{given.marker}-node-{os.getpid()}"
    os.mknod(path, stat.S_IFCHR | 0o600, _NULL_DEVICE)
    os.unlink(path)
    return "made"


@attack("write-image", "change the interpreter, the libraries or the guest package")
def write_image(given: Given) -> str:
    """What every other sandbox runs; opened only."""
    for path in (*given.read_only, __file__):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
        except OSError:
            continue
        return f"{path} is open for writing"
    raise Refused("all read-only")


@attack("files-device", "use a device that lies in /mnt/files", outside=_HOST)
def device_in_files(given: Given) -> str:
    """Put there by the host; nodev must make it mean nothing."""
    return _open_device(given.device_node, given)


def _runs_as_root(program: list[str]) -> str:
    """Start it as someone who is not root, and look who it is."""
    child = subprocess.Popen(
        program,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        user=_NOBODY if os.geteuid() == 0 else None,
        group=_NOBODY if os.geteuid() == 0 else None,
        extra_groups=[] if os.geteuid() == 0 else None,
    )
    try:
        until = time.monotonic() + _PATIENCE_S
        while time.monotonic() < until and child.poll() is None:
            if os.stat(f"/proc/{child.pid}").st_uid == 0 and _effective_uid(child.pid) == 0:
                return f"{program[0]} ran as root"
            time.sleep(0.01)
    finally:
        child.kill()
        child.communicate()
    raise Refused(f"{program[0]} did not become root")


def _effective_uid(pid: int) -> int:
    with open(f"/proc/{pid}/status", encoding="utf-8") as file:
        return next(int(line.split()[2]) for line in file if line.startswith("Uid:"))


@attack("files-setuid", "run a setuid-root program that lies in /mnt/files", outside=_HOST)
def setuid_in_files(given: Given) -> str:
    """Put there by the host; nosuid and no_new_privs must make it mean nothing."""
    return _runs_as_root([given.setuid_program])


@attack("setuid-program", "run su, which is setuid root", outside=_HOST)
def setuid_program(_given: Given) -> str:
    """It asks for a password as root."""
    return _runs_as_root(["/usr/bin/su", "root", "-c", "true"])


def _text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read(4096)


@attack("host-file", "read a file of the host's by its path", judge=Judge.CANARY, outside=_HOST)
def host_file(given: Given) -> str:
    """The host wrote it for this."""
    return _text(given.secret_file)


@attack("files-symlink", "read a file of the host's through a link in /mnt/files", judge=Judge.CANARY, outside=_HOST)
def symlink(given: Given) -> str:
    """Resolved inside, where there is no such file."""
    link = f"{given.files}/{given.marker}-link-{os.getpid()}"
    os.symlink(given.secret_file, link)
    try:
        return _text(link)
    finally:
        os.unlink(link)


@attack("files-dotdot", "climb out of /mnt/files to the host's folders", judge=Judge.CANARY, outside=_HOST)
def dotdot(given: Given) -> str:
    """With a folder descriptor, as mounts are crossed upwards."""
    folder = os.open(given.files, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        path = "../" * 40 + given.secret_file.lstrip("/")
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder), encoding="utf-8") as file:
            return file.read(4096)
    finally:
        os.close(folder)


@attack("files-parent", "see other sessions' folders beside /mnt/files", judge=Judge.CANARY, outside=_HOST)
def parent_folder(given: Given) -> str:
    """Outside the parent holds them all."""
    return ", ".join(os.listdir(f"{given.files}/.."))


@attack("packages-write", "change a file of an installed package, which every session with it shares", outside=_HOST)
def write_package(given: Given) -> str:
    """The host has put one there."""
    with open(f"{given.packages}/installed.py", "a", encoding="utf-8") as file:
        file.write("#")
    return "written"


@attack("packages-new", "put a module beside the installed packages", outside=_HOST)
def new_package(given: Given) -> str:
    """It would be found by every Python of the session from then on, unseen by whoever reviews its files."""
    with open(f"{given.packages}/new.py", "w", encoding="utf-8") as file:
        file.write("#")
    return "written"


@attack("packages-link", "have a second, writable name for a file of an installed package", outside=_HOST)
def link_package(given: Given) -> str:
    """A hard link in the mount, which can be written, would be the same file."""
    os.link(f"{given.packages}/installed.py", f"{given.files}/linked.py")
    return "linked"


@attack("other-session", "read another session's file by its path on the host", judge=Judge.CANARY, outside=_HOST)
def other_session(given: Given) -> str:
    """A second sandbox is running that has it at /mnt/files."""
    return _text(given.other_file)


@attack("other-scratch", "find another session's files in /tmp, home or /dev/shm", judge=Judge.CANARY, outside=_HOST)
def other_scratch(given: Given) -> str:
    """The other sandbox has written them; outside, a file of the same name lies in the folder."""
    for folder in (given.folder, "/home/user", given.shm, "/var/tmp"):
        if os.path.exists(f"{folder}/{given.marker}-scratch"):
            return _text(f"{folder}/{given.marker}-scratch")
    raise Refused("not there")


@attack("backstage", "reach the folder of all sessions' files", judge=Judge.CANARY, outside=_HOST)
def backstage(given: Given) -> str:
    """Where the zygote keeps it, where the host has it, and through every process's own view."""
    seen: list[str] = []
    pids = [name for name in os.listdir("/proc") if name.isdigit()] if given.target_pid == 1 else []
    for top in ("", *(f"/proc/{pid}/root" for pid in pids), *(f"/proc/{pid}/cwd" for pid in pids)):
        for folder in (BACKSTAGE, f"{BACKSTAGE}/files", f"{BACKSTAGE}/slots", given.files_root):
            try:
                seen += os.listdir(top + folder)
            except OSError:
                continue
    if not seen:
        raise Refused("nothing there")
    return ", ".join(seen)


def _leave(path: str, given: Given) -> str:
    with open(path, "w", encoding="utf-8") as file:
        file.write(given.marker)
    return f"wrote {path}"


@attack("tmp-shared", "leave a file in the host's /tmp", judge=Judge.SEEN, outside=_HOST)
def tmp_shared(given: Given) -> str:
    """The host looks for it."""
    return _leave(f"/tmp/{given.marker}-left", given)


@attack("shm-shared", "leave a segment in the host's /dev/shm", judge=Judge.SEEN, outside=_HOST)
def shm_shared(given: Given) -> str:
    """The host looks for it."""
    return _leave(f"/dev/shm/{given.marker}-left", given)
