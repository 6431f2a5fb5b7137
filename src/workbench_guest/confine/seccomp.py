"""The system-call filter of a sandbox: which calls never reach the kernel, as a classic BPF program.

A deny-list with a ceiling: calls newer than the newest one reviewed here do not exist inside, so a kernel upgrade
cannot open a door that nobody has looked at. Loading the program is left to `syscalls.install_filter`.
"""

from __future__ import annotations

import errno
import functools
import struct

from workbench_guest.confine.syscalls import MACHINE

# AUDIT_ARCH_* of <linux/audit.h>.
_ARCHITECTURE = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_X32_BIT = 0x40000000
# mseal, Linux 6.10. Later ones answer ENOSYS, which every C library knows how to live with.
NEWEST_REVIEWED = 462

# BARRIER: each of these reaches host-wide state or wide kernel attack surface; held by the rows of the same names in
# workbench_guest/attacks, which `workbench doctor --prove` and tests/security/test_proof.py run.
# name: (x86_64, aarch64); None where the architecture has no such call.
DENIED: dict[str, tuple[int | None, int | None]] = {
    # other processes' memory and descriptors
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "kcmp": (312, 272),
    "pidfd_getfd": (438, 438), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    # keyrings are not namespaced
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219),
    # large or privileged kernel interfaces
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "bpf": (321, 280), "perf_event_open": (298, 241), "userfaultfd": (323, 282),
    "fanotify_init": (300, 262), "fanotify_mark": (301, 263),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "lookup_dcookie": (212, 18),
    "memfd_secret": (447, 447), "modify_ldt": (154, None), "uselib": (134, None), "sysfs": (139, None),
    "_sysctl": (156, None), "nfsservctl": (180, 42), "ustat": (136, None),
    # memory placement on the host's nodes
    "mbind": (237, 235), "set_mempolicy": (238, 237), "migrate_pages": (256, 238), "move_pages": (279, 239),
    "set_mempolicy_home_node": (450, 450),
    # namespaces and mounts
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41),
    "chroot": (161, 51), "open_tree": (428, 428), "move_mount": (429, 429), "fsopen": (430, 430),
    "fsconfig": (431, 431), "fsmount": (432, 432), "fspick": (433, 433), "mount_setattr": (442, 442),
    # the machine itself
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105), "finit_module": (313, 273),
    "delete_module": (176, 106), "syslog": (103, 116), "reboot": (169, 142), "swapon": (167, 224),
    "swapoff": (168, 225), "acct": (163, 89), "quotactl": (179, 60), "quotactl_fd": (443, 443),
    "settimeofday": (164, 170), "clock_settime": (227, 112), "adjtimex": (159, 171), "clock_adjtime": (305, 266),
    "sethostname": (170, 161), "setdomainname": (171, 162), "iopl": (172, None), "ioperm": (173, None),
    "vhangup": (153, 58),
}  # fmt: skip

# Memory that belongs to no mapping and no mount: a control group counts it, a watchdog over /proc cannot see it.
# BARRIER: refused where only a watchdog counts; held by the proof's `memory-bomb-unmapped` and `memory-bomb-segments`.
_UNCOUNTED = {"memfd_create": (319, 279), "shmget": (29, 194)}

_FILTERED = {"clone": (56, 220), "socket": (41, 198), "socketpair": (53, 199), "ioctl": (16, 29),
             "personality": (135, 92), "clone3": (435, 435), "sched_setaffinity": (203, 122),
             "setsockopt": (54, 208), "seccomp": (317, 277), "prctl": (157, 167)}  # fmt: skip

# user, mount, pid, net, ipc, uts, cgroup
_NAMESPACE_FLAGS = 0x7E020000
_AF_UNIX, _AF_INET, _AF_INET6, _AF_NETLINK = 1, 2, 10, 16
_SOL_SOCKET, _ATTACH_FILTERS = 1, (26, 50, 51, 52)  # SO_ATTACH_FILTER, _BPF, _REUSEPORT_CBPF, _REUSEPORT_EBPF
_PR_SET_SECCOMP = 22
_TTY_INJECTION = (0x5412, 0x541C, 0x5423)  # TIOCSTI, TIOCLINUX, TIOCSETD
_PERSONALITY_QUERY = 0xFFFFFFFF

_LOAD, _JUMP_IF_EQUAL, _JUMP_IF_GREATER, _JUMP_IF_GREATER_OR_EQUAL, _JUMP_IF_SET, _RETURN = (
    0x20, 0x15, 0x25, 0x35, 0x45, 0x06)  # fmt: skip
_OFFSET_NUMBER, _OFFSET_ARCHITECTURE, _OFFSET_ARGUMENTS = 0, 4, 16
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("=HBBI", code, if_true, if_false, value)


def _refuse(code: int) -> bytes:
    return _op(_RETURN, _ERRNO | code)


def _argument(index: int) -> bytes:
    # The low half: every argument compared here is an int in the kernel's own signature.
    return _op(_LOAD, _OFFSET_ARGUMENTS + 8 * index)


def _only_for(number: int, body: bytes) -> bytes:
    """`body` when the call is `number`; it must end in a return."""
    return _op(_JUMP_IF_EQUAL, number, 0, len(body) // 8) + body


def _socket_rule() -> bytes:
    """Unix, IPv4 and IPv6, and no other family.

    BARRIER: vsock is not namespaced and reaches the hypervisor's side; answers that nobody reads from a netlink socket
    are kernel memory that no control group counts. Held by the proof's `socket-*` rows and
    tests/unit/workbench_guest/confine/test_seccomp.py.
    """
    checks = _argument(0)
    for family in (_AF_UNIX, _AF_INET, _AF_INET6):
        checks += _op(_JUMP_IF_EQUAL, family, 0, 1) + _op(_RETURN, _ALLOW)
    # Libraries that list network interfaces take this answer for a machine that cannot tell; libzmq aborts on others.
    checks += _op(_JUMP_IF_EQUAL, _AF_NETLINK, 0, 1) + _refuse(errno.EOPNOTSUPP)
    return checks + _refuse(errno.EAFNOSUPPORT)


def _socket_option_rule() -> bytes:
    """BARRIER: filters on sockets are compiled code from one machine-wide budget, without which no sandbox can be
    made; held by tests/unit/workbench_guest/confine/test_seccomp.py."""
    at_socket_level = _argument(2)
    for option in _ATTACH_FILTERS:
        at_socket_level += _op(_JUMP_IF_EQUAL, option, 0, 1) + _refuse(errno.EPERM)
    at_socket_level += _op(_RETURN, _ALLOW)
    allow = _op(_RETURN, _ALLOW)
    return _argument(1) + _op(_JUMP_IF_EQUAL, _SOL_SOCKET, 0, len(at_socket_level) // 8) + at_socket_level + allow


def _tty_rule() -> bytes:
    checks = _argument(1)
    for request in _TTY_INJECTION:
        checks += _op(_JUMP_IF_EQUAL, request, 0, 1) + _refuse(errno.EPERM)
    return checks + _op(_RETURN, _ALLOW)


@functools.cache
def build_filter(*, pin_cpus: bool, machine: str = MACHINE) -> bytes:
    """The program for `machine`.

    Args:
        pin_cpus: there is no control group: refuse sched_setaffinity, as the affinity mask is what enforces the CPU
            cap, and memory that the watchdog cannot count.
        machine: as `platform.machine()` says it.
    """
    column = list(_ARCHITECTURE).index(machine)
    call = {name: numbers[column] for name, numbers in _FILTERED.items()}
    program = _op(_LOAD, _OFFSET_ARCHITECTURE)
    program += _op(_JUMP_IF_EQUAL, _ARCHITECTURE[machine], 1, 0) + _op(_RETURN, _KILL_PROCESS)
    program += _op(_LOAD, _OFFSET_NUMBER)
    program += _op(_JUMP_IF_GREATER_OR_EQUAL, _X32_BIT, 0, 1) + _refuse(errno.ENOSYS)
    program += _op(_JUMP_IF_GREATER, NEWEST_REVIEWED, 0, 1) + _refuse(errno.ENOSYS)
    # clone3 hides its flags behind a pointer, where a filter cannot look; C libraries fall back to clone.
    program += _only_for(call["clone3"], _refuse(errno.ENOSYS))
    for numbers in DENIED.values():
        number = numbers[column]
        if number is not None:
            program += _only_for(number, _refuse(errno.EPERM))
    if pin_cpus:
        program += _only_for(call["sched_setaffinity"], _refuse(errno.EPERM))
        for uncounted in _UNCOUNTED.values():
            program += _only_for(uncounted[column], _refuse(errno.ENOSYS))
    allow = _op(_RETURN, _ALLOW)
    program += _only_for(
        call["clone"],
        _argument(0) + _op(_JUMP_IF_SET, _NAMESPACE_FLAGS, 0, 1) + _refuse(errno.EPERM) + allow,
    )
    program += _only_for(
        call["personality"],
        _argument(0) + _op(_JUMP_IF_EQUAL, _PERSONALITY_QUERY, 0, 1) + allow + _refuse(errno.EPERM),
    )
    program += _only_for(call["socket"], _socket_rule())
    unix_pair = _argument(0) + _op(_JUMP_IF_EQUAL, _AF_UNIX, 0, 1) + allow + _refuse(errno.EAFNOSUPPORT)
    program += _only_for(call["socketpair"], unix_pair)
    program += _only_for(call["setsockopt"], _socket_option_rule())
    # The same budget of compiled code; programs that would filter themselves go on as on a kernel without filters.
    program += _only_for(call["seccomp"], _refuse(errno.ENOSYS))
    program += _only_for(
        call["prctl"], _argument(0) + _op(_JUMP_IF_EQUAL, _PR_SET_SECCOMP, 0, 1) + _refuse(errno.EINVAL) + allow
    )
    program += _only_for(call["ioctl"], _tty_rule())
    return program + allow
