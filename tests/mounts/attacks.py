"""What hostile code does in a mount while the host works in it. Runs inside a sandbox as well, so it imports nothing of
ours: `attack` is passed on as text.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import shutil
import sys
import time


def attack(folder: str, outside: str, lasting_s: float, seed: int) -> int:
    """Swap files, folders, links and FIFOs for each other as fast as that goes; how many times."""
    exchange = ctypes.CDLL(None, use_errno=True).renameat2
    chance = random.Random(seed)
    own = os.path.join(folder, f".own-{seed}")

    def refresh() -> None:
        shutil.rmtree(own, ignore_errors=True)
        os.makedirs(os.path.join(own, "d", "deep"), exist_ok=True)
        for name in ("f", "d/f", "d/deep/f", "g"):
            with open(os.path.join(own, name), "wb") as file:
                file.write(b"mine" * 500)
        os.symlink(os.path.join(outside, "canary"), os.path.join(own, "link"))
        os.symlink(outside, os.path.join(own, "out"))
        os.symlink("/etc/passwd", os.path.join(own, "passwd"))
        os.symlink("/proc/self/root" + outside, os.path.join(own, "root"))
        os.mkfifo(os.path.join(own, "fifo"))

    def swap(one: str, other: str) -> None:
        exchange(-100, one.encode(), -100, other.encode(), 2)

    def grow() -> None:
        # It may be a FIFO by now, and an attacker that waits is none.
        file = os.open(os.path.join(folder, "g"), os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK)
        os.write(file, b"more" * 1000)
        os.close(file)
        os.truncate(os.path.join(folder, "g"), chance.randrange(5000))

    deeds, until = 0, time.monotonic() + lasting_s
    while time.monotonic() < until:
        if deeds % 500 == 0:
            # The host is at work in it as well: what cannot be made anew now can be the next time.
            with contextlib.suppress(OSError):
                refresh()
        deeds += 1
        mine = os.path.join(own, chance.choice(("f", "link", "passwd", "fifo", "d", "out", "root", "g")))
        theirs = os.path.join(folder, chance.choice(("f", "d", "d/f", "d/deep", "g", "new")))
        try:
            if chance.random() < 0.1:
                grow()
            elif not os.path.lexists(theirs):
                os.rename(mine, theirs)
            else:
                for _ in range(chance.randrange(1, 40)):
                    swap(mine, theirs)
        except OSError:
            continue
    return deeds


def read_naively(folder: str, lasting_s: float) -> bool:
    """Look first and open then, as one would; whether that led to what is outside."""
    until = time.monotonic() + lasting_s
    while time.monotonic() < until:
        for place in ("f", "d/f", "g"):
            path = os.path.join(folder, place)
            try:
                if os.path.realpath(path).startswith(folder + "/") and os.path.isfile(path):
                    held = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
                    data = os.pread(held, 1000, 0)
                    os.close(held)
                    if b"CANARY" in data or b"root:" in data:
                        return True
            except OSError:
                continue
    return False


if __name__ == "__main__":
    if sys.argv[1] == "read":
        sys.exit(0 if read_naively(sys.argv[2], float(sys.argv[3])) else 1)
    if os.geteuid() == 0:
        # As the sandbox's user: with no rights outside, where its own links lead it as well.
        os.setgroups([])
        os.setgid(os.stat(".").st_gid)
        os.setuid(os.stat(".").st_uid)
    attack(".", sys.argv[1], float(sys.argv[2]), int(sys.argv[3]))
