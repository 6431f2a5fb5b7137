"""A virtual machine for one command: Debian's stock kernel, emulated, on this host's own files.

The root inside is the host's, read-only, under an overlay in memory: what is installed here is installed there, and
nothing that happens there is left. What the command checks is left to the scripts in `guest/`.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path

GUEST = Path(__file__).resolve().parent / "guest"
_QEMU, _BUSYBOX = "qemu-system-x86_64", Path("/bin/busybox")
# In the guest's memory; the overlay, /tmp and every sandbox share it.
_MEMORY_MIB = 1536
_TAG = "hostroot"
_MODULES = ("virtio_pci", "9pnet_virtio", "9p", "overlay")
_KILL_TIMEOUT_S = 10.0
_BEGIN, _END = "---- command begins ----", "---- command ended with code "


class PartsMissing(Exception):
    """The emulator, busybox or the kernel is not here; the message says how to get them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What `scripts/install-vm-parts` brings."""

    qemu: str
    busybox: Path
    kernel: Path
    modules: tuple[Path, ...]
    """in the order in which they load"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What the command did; `code` is None if the machine was ended before it finished."""

    code: int | None
    output: str
    console: str
    """everything the machine said, for when the rest does not explain itself"""


def find_parts() -> Parts:
    """The parts on this host.

    Raises:
        PartsMissing: run the script that it names.
    """
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(cache) / "workbench-vm" / "current"
    qemu = shutil.which(_QEMU)
    kernel = next(iter(folder.glob("boot/vmlinuz-*")), None)
    if qemu is None or kernel is None or not _BUSYBOX.exists():
        raise PartsMissing("no emulator, busybox or kernel for a virtual machine: run scripts/install-vm-parts")
    return Parts(qemu=qemu, busybox=_BUSYBOX, kernel=kernel, modules=_load_order(folder / "lib/modules"))


def _load_order(folder: Path) -> tuple[Path, ...]:
    """Dependencies first. The package has no table of them: the kernel's own set-up makes it when it is installed."""
    known = {path.stem.replace("-", "_"): path for path in folder.rglob("*.ko")}
    ordered: dict[str, Path] = {}

    def add(name: str) -> None:
        if name in ordered:
            return
        path = known[name]
        found = re.search(rb"\0depends=([^\0]*)\0", path.read_bytes())
        for needed in (found.group(1).decode() if found else "").split(","):
            if needed:
                add(needed.replace("-", "_"))
        ordered[name] = path

    for name in _MODULES:
        add(name)
    return tuple(ordered.values())


def run_in_machine(parts: Parts, command: list[str], *, timeout_s: float, systemd: bool = False) -> Run:
    """Boot, run `command` as root in the host's files, power off. Nothing is left, whatever happens.

    With `systemd` that is the first process inside, and `command` a service of its.
    """
    with tempfile.TemporaryDirectory(prefix="workbench-vm-") as folder:
        initramfs = Path(folder) / "initramfs"
        initramfs.write_bytes(_initramfs(parts, command, systemd=systemd))
        console = _boot(parts, initramfs, Path(folder) / "console", timeout_s)
    text = console.replace("\r\n", "\n")
    _, _, after = text.partition(f"{_BEGIN}\n")
    output, ended, rest = after.partition(_END)
    code = int(rest.split()[0]) if ended else None
    return Run(code=code, output=output, console=text)


def _boot(parts: Parts, initramfs: Path, console: Path, timeout_s: float) -> str:
    process = subprocess.Popen(
        [
            *(parts.qemu, "-nodefaults", "-no-reboot", "-display", "none", "-nic", "none", "-M", "pc,accel=tcg"),
            *("-cpu", "max", "-smp", "2", "-m", str(_MEMORY_MIB), "-serial", f"file:{console}"),
            *("-kernel", str(parts.kernel), "-initrd", str(initramfs)),
            *("-append", "console=ttyS0 loglevel=1 panic=-1 cgroup_no_v1=all mitigations=off"),
            *("-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"),
            *("-device", f"virtio-9p-pci,fsdev=root,mount_tag={_TAG}"),
        ],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    try:
        said, _ = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        said = f"the machine was ended after {timeout_s:.0f} s"
    finally:
        process.kill()
        process.wait(_KILL_TIMEOUT_S)
    written = console.read_text(errors="replace") if console.exists() else ""
    return f"{written}\n{said}"


def _initramfs(parts: Parts, command: list[str], *, systemd: bool) -> bytes:
    # The host's folder of the kernel may be one that only its owner can enter; in here the modules need no path.
    modules = {f"modules/{number:02d}-{path.name}": path.read_bytes() for number, path in enumerate(parts.modules)}
    line = f"exec {shlex.join(command)}\n"
    files = {
        "init": (GUEST / "init").read_bytes(),
        "second-init": (GUEST / "second-init").read_bytes(),
        **({"systemd": b""} if systemd else {}),
        "command": line.encode(),
        "bin/busybox": parts.busybox.read_bytes(),
        **modules,
    }
    folders = ("bin", "modules", "proc", "sys", "dev", "lower", "over", "new")
    return _archive(folders, files)


def _archive(folders: tuple[str, ...], files: dict[str, bytes]) -> bytes:
    """The `newc` format, which is all that the kernel unpacks."""
    entries = [(name, 0o040755, b"") for name in folders]
    entries += [(name, 0o100755, content) for name, content in files.items()]
    entries.append(("TRAILER!!!", 0, b""))
    archive = bytearray()
    for number, (name, mode, content) in enumerate(entries, start=1):
        path = name.encode() + b"\0"
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(path), 0)
        archive += b"070701" + b"".join(b"%08X" % field for field in fields) + path
        archive += bytes(-len(archive) % 4) + content
        archive += bytes(-len(archive) % 4)
    return bytes(archive)
