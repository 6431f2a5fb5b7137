"""The user namespace in which an ordinary user's zygotes are root, made once and held by the host as a descriptor."""

from __future__ import annotations

import os

from workbench_guest.confine import syscalls as sys_


def make_user_namespace() -> int:
    """A namespace whose root is this user. The caller closes the descriptor; it must outlive every sandbox in it.

    Raises:
        OSError: the kernel, a sysctl or AppArmor does not let this user make one.
    """
    ready_read, ready_write = os.pipe()
    done_read, done_write = os.pipe()
    child = os.fork()
    if child == 0:
        _hold(ready_write, done_read, done_write)
    try:
        os.close(ready_write)
        os.close(done_read)
        code = int(os.read(ready_read, 16) or b"1")
        if code:
            raise OSError(code, f"unshare user namespace: {os.strerror(code)}")
        _map(child)
        return os.open(f"/proc/{child}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
    finally:
        os.close(ready_read)
        os.close(done_write)
        os.waitpid(child, 0)


def _hold(ready: int, done: int, done_write: int) -> None:
    """In the child: be in the namespace until the parent has a descriptor of it."""
    try:
        os.close(done_write)
        try:
            sys_.unshare(sys_.CLONE_NEWUSER)
            os.write(ready, b"0")
        except OSError as problem:
            os.write(ready, str(problem.errno or 1).encode())
        os.read(done, 1)
    finally:
        os._exit(0)


def _map(child: int) -> None:
    for name, line in (("setgroups", "deny"), ("uid_map", f"0 {os.geteuid()} 1"), ("gid_map", f"0 {os.getegid()} 1")):
        descriptor = os.open(f"/proc/{child}/{name}", os.O_WRONLY | os.O_CLOEXEC)
        try:
            os.write(descriptor, line.encode())
        finally:
            os.close(descriptor)
