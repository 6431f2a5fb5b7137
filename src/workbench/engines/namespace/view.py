"""What of the host's file system a sandbox sees: the list of binds, links and small files for one image."""

from __future__ import annotations

import os
from pathlib import Path

import workbench_guest
from workbench.model.image import Image
from workbench_guest.messages import HOME, INSIDE_UID, PACKAGES, Bind, ZygotePlan

GUEST_ROOT = "/opt/workbench"
DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty")
# Programs and shared data. /opt, /srv, /var and /root stay outside: they are where people keep things.
_SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
# Only what programs need to start and what holds no secret; passwd, hosts and resolv.conf are written anew.
_ETC = (
    "ssl/certs", "ssl/openssl.cnf", "ca-certificates", "alternatives", "fonts", "ld.so.cache", "ld.so.conf",
    "ld.so.conf.d", "localtime", "timezone", "mime.types", "terminfo", "bash.bashrc", "profile", "inputrc",
    "protocols", "services", "R", "perl", "java-17-openjdk", "locale.alias", "magic", "ImageMagick-6",
)  # fmt: skip
# Node looks for packages in this folder from wherever a program lies, for imports too, which know no NODE_PATH.
_NODE_MODULES = (f"{PACKAGES}/node/node_modules", "/node_modules")
_TEXTS = {
    "/etc/passwd": (
        f"root:x:0:0:root:/root:/usr/sbin/nologin\nuser:x:{INSIDE_UID}:{INSIDE_UID}:agent:{HOME}:/bin/bash\n"
        "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n"
    ),
    "/etc/group": f"root:x:0:\nuser:x:{INSIDE_UID}:\nnogroup:x:65534:\n",
    "/etc/hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "/etc/hostname": "sandbox\n",
    "/etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
    "/etc/resolv.conf": "",
    "/etc/shells": "/bin/sh\n/bin/bash\n",
}


def zygote_plan(image: Image, *, staging: Path, files_root: Path, packages_root: Path) -> ZygotePlan:
    """The plan for one image on this host."""
    binds: list[Bind] = []
    links: list[tuple[str, str]] = [_NODE_MODULES]
    for path in _SYSTEM:
        if os.path.islink(path):
            links.append((os.readlink(path), path))
        elif os.path.isdir(path):
            binds.append(Bind(source=path, target=path))
    for name in _ETC:
        source = os.path.realpath(f"/etc/{name}")
        if os.path.exists(source) and os.access(source, os.R_OK):
            binds.append(Bind(source=source, target=f"/etc/{name}"))
    covered = [bind.target for bind in binds]
    for folder in image.roots:
        if not any(folder == top or folder.startswith(top + "/") for top in covered):
            binds.append(Bind(source=folder, target=folder))
            covered.append(folder)
    guest = Path(workbench_guest.__file__).resolve().parent
    binds.append(Bind(source=str(guest), target=f"{GUEST_ROOT}/{guest.name}"))
    return ZygotePlan(
        binds=tuple(binds),
        links=tuple(links),
        texts=tuple(_TEXTS.items()),
        devices=tuple(device for device in DEVICES if os.path.exists(device)),
        preload=image.preload,
        entry=image.entry,
        guest_root=GUEST_ROOT,
        staging=str(staging),
        files_root=str(files_root),
        packages_root=str(packages_root),
    )
