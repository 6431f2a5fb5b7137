"""Each call of the filter's list, with arguments that the kernel must turn down for another reason than permission.

BARRIER: no argument here may reboot, load, swap, set a clock or hang anything, even for root without a filter: wrong
magic numbers, lengths, descriptors and names see to that. Calls that need more than a number are in `processes`.
"""

from __future__ import annotations

import functools
import struct

from workbench_guest.attacks.kernel import Argument, denied_number, reach
from workbench_guest.attacks.registry import Attack, Given, Refused, register

_HERE, _NOBODY = -100, -1
_NO_SUCH = b"/workbench-proof/no/such/path"
_PROCESS_KEYRING = -2
_PERF_ATTRIBUTES = struct.pack("IIQQQQQIIQ", 1, 64, 0, 0, 0, 0, 0b1100001, 0, 0, 0)
_FANOTIFY_UNPRIVILEGED = 0x1 | 0x200
_USERFAULT_USER_MODE_ONLY = 1
_INVALID_TIME = struct.pack("qq", 0, -1)
_ROOT_HANDLE = struct.pack("IiII", 8, 1, 2, 0)

# name: (what it would give, one or more sets of arguments)
_CALLS: dict[str, tuple[str, tuple[tuple[Argument, ...], ...]]] = {
    "process_madvise": ("advise on another process's memory", ((_NOBODY, None, 0, 20, 0),)),
    "process_mrelease": ("take a dying process's memory", ((_NOBODY, 0),)),
    "add_key": (
        "put a key into a keyring of the kernel's",
        ((b"user", b"workbench-proof", b"x", 1, _PROCESS_KEYRING),),
    ),
    "request_key": ("find another user's key", ((b"user", b"workbench-proof-none", None, 0),)),
    "keyctl": ("look into a keyring", ((0, _PROCESS_KEYRING, 1),)),
    "io_uring_setup": ("open an io_uring, which goes around the filter", ((1, bytes(120)),)),
    "io_uring_enter": ("submit to an io_uring", ((_NOBODY, 0, 0, 0, None, 0),)),
    "io_uring_register": ("register with an io_uring", ((_NOBODY, 0, None, 0),)),
    "bpf": ("load programs into the kernel", ((0, bytes(64), 64), (1, b"\xff" * 4 + bytes(60), 64))),
    "perf_event_open": ("watch the machine through its counters", ((_PERF_ATTRIBUTES, 0, -1, -1, 0),)),
    "userfaultfd": ("stop the kernel at a page fault of one's choice", ((_USERFAULT_USER_MODE_ONLY,),)),
    "fanotify_init": ("watch file systems", ((_FANOTIFY_UNPRIVILEGED, 0),)),
    "fanotify_mark": ("watch a mount", ((_NOBODY, 1, 1, _HERE, b"/"),)),
    "open_by_handle_at": ("open files by number, past every mount", ((_HERE, _ROOT_HANDLE, 0), (_HERE, None, 0))),
    "name_to_handle_at": ("learn the number of a file", ((_HERE, b"/", bytes(8), bytes(8), 0),)),
    "lookup_dcookie": ("learn paths by cookie", ((0, None, 0),)),
    "memfd_secret": ("take memory that nobody can account for", ((0,),)),
    "modify_ldt": ("change the segment table", ((0, bytes(16), 16),)),
    "uselib": ("map a library the old way", ((_NO_SUCH,),)),
    "sysfs": ("list the kernel's file systems", ((99, 0, 0),)),
    "_sysctl": ("change the kernel's settings the old way", ((None,),)),
    "nfsservctl": ("steer the NFS server", ((0, None, None),)),
    "ustat": ("ask about any device", ((0, bytes(64)),)),
    "mbind": ("place memory on the host's nodes", ((0, 0, 0, None, 0, 0),)),
    "set_mempolicy": ("place memory on the host's nodes", ((0, None, 0),)),
    "migrate_pages": ("move memory between the host's nodes", ((0, 0, None, None),)),
    "move_pages": ("find out where memory lies", ((0, 0, None, None, None, 0),)),
    "set_mempolicy_home_node": ("place memory on the host's nodes", ((0, 0, 0, 1),)),
    "setns": ("enter another namespace", ((_NOBODY, 0),)),
    "umount2": ("uncover what is below a mount", ((b"/usr/bin", 0),)),
    "pivot_root": ("change the root", ((_NO_SUCH, _NO_SUCH),)),
    "chroot": ("change the root", ((b"/",),)),
    "open_tree": ("copy a mount", ((_HERE, b"/", 1),)),
    "move_mount": ("attach a mount", ((_NOBODY, b"x", _NOBODY, b"x", 0),)),
    "fsopen": ("prepare a file system", ((b"tmpfs", 0),)),
    "fsconfig": ("configure a file system", ((_NOBODY, 0, None, None, 0),)),
    "fsmount": ("make a mount", ((_NOBODY, 0, 0),)),
    "fspick": ("reconfigure a file system", ((_HERE, _NO_SUCH, 0),)),
    "mount_setattr": ("make read-only mounts writable", ((_NOBODY, b"x", 0, bytes(32), 32),)),
    "kexec_load": ("start another kernel", ((0, 0xFFFF, None, 0),)),
    "kexec_file_load": ("start another kernel", ((_NOBODY, _NOBODY, 0, None, 0xFFFF),)),
    "init_module": ("load a module", ((None, 0, b""),)),
    "finit_module": ("load a module", ((_NOBODY, b"", 0),)),
    "delete_module": ("unload a module", ((b"workbench_proof_no_such_module", 0o4000),)),
    "syslog": ("read the kernel's log", ((10, None, 0),)),
    "reboot": ("restart the machine (with wrong magic numbers)", ((0, 0, 0, None),)),
    "swapon": ("add swap", ((_NO_SUCH, 0),)),
    "swapoff": ("remove swap", ((_NO_SUCH,),)),
    "acct": ("have every process of the host recorded", ((_NO_SUCH,),)),
    "quotactl": ("change disk quotas", ((0x7FFFFF00, None, 0, None),)),
    "quotactl_fd": ("change disk quotas", ((_NOBODY, 0x7FFFFF00, 0, None),)),
    "settimeofday": ("set the host's clock (to nothing, then to no time)", ((None, None), (_INVALID_TIME, None))),
    "clock_settime": ("set the host's clock (one that does not exist)", ((9999, _INVALID_TIME),)),
    "adjtimex": ("steer the host's clock (only asked about)", ((bytes(208),),)),
    "clock_adjtime": ("steer the host's clock (only asked about)", ((0, bytes(208)),)),
    "sethostname": ("rename the machine (with a wrong length)", ((b"x", -1),)),
    "setdomainname": ("rename the domain (with a wrong length)", ((b"x", -1),)),
    "iopl": ("reach the machine's ports (at a level that does not exist)", ((4,),)),
    "ioperm": ("reach the machine's ports (past the last one)", ((65536, 1, 1),)),
    # Every attack runs in a session without a terminal, so there is none to hang up.
    "vhangup": ("hang up a terminal", ((),)),
}


def _try(name: str, variants: tuple[tuple[Argument, ...], ...], _given: Given) -> str:
    refusals = []
    for arguments in variants:
        try:
            return reach(denied_number(name), *arguments)
        except Refused as refusal:
            refusals.append(str(refusal))
    raise Refused(", ".join(refusals))


for _name, (_what, _variants) in _CALLS.items():
    register(Attack(name=_name, description=_what, run=functools.partial(_try, _name, _variants)))
