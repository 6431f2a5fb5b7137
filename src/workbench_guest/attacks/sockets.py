"""Socket families beyond the allowed ones: code that few have reviewed, and ways past the network namespace."""

from __future__ import annotations

import ctypes
import functools
import os
import socket
import struct

from workbench_guest.attacks.kernel import call, reach
from workbench_guest.attacks.registry import Attack, Given, Refused, attack, register
from workbench_guest.confine.syscalls import MACHINE

_SOCKET = {"x86_64": 41, "aarch64": 198}[MACHINE]
_RAW, _DATAGRAM, _SEQUENCED, _STREAM = 3, 2, 5, 1
_ICMP = 1
_HIGH_BIT = 1 << 40
_ATTACH_FILTER, _MANY_TERMINALS = 26, 200
_SECCOMP = {"x86_64": 317, "aarch64": 277}[MACHINE]
# name: (family, type, protocol, what it would give)
_FAMILIES = {
    "vsock": (40, _STREAM, 0, "reach the hypervisor's side, past every network namespace"),
    "alg": (38, _SEQUENCED, 0, "the kernel's cryptography"),
    "packet": (17, _RAW, 0x0300, "read every packet of an interface"),
    "xdp": (44, _RAW, 0, "share memory with a network driver"),
    "key": (15, _RAW, 2, "steer the kernel's IPsec keys"),
    "rds": (21, _SEQUENCED, 0, "reliable datagrams"),
    "tipc": (30, _SEQUENCED, 0, "cluster messages"),
    "bluetooth": (31, _RAW, 1, "the machine's Bluetooth"),
    "can": (29, _RAW, 1, "a vehicle bus"),
    "smc": (43, _STREAM, 0, "shared memory between hosts"),
    "qrtr": (42, _DATAGRAM, 0, "the modem's router"),
    "netlink-audit": (16, _RAW, 9, "the audit system"),
    "netlink-generic": (16, _RAW, 16, "dozens of kernel modules' settings"),
    "netlink-netfilter": (16, _RAW, 12, "the firewall"),
    "netlink-xfrm": (16, _RAW, 6, "IPsec policies"),
    "netlink-diag": (16, _RAW, 4, "what sockets there are"),
    "netlink-uevent": (16, _RAW, 15, "the machine's device events"),
    "netlink-connector": (16, _RAW, 11, "the host's process events"),
    "netlink-route": (16, _RAW, 0, "answers that nobody reads: kernel memory that no control group counts"),
    "raw-icmp": (2, _RAW, _ICMP, "forge IPv4 packets"),
    "raw-icmp6": (10, _RAW, 58, "forge IPv6 packets"),
}
# appletalk, ax25, x25, pppox, llc, phonet, ieee802154, caif, nfc, kcm, mctp: one row, as no host has many of them
_RARE = {5: _DATAGRAM, 3: _SEQUENCED, 9: _SEQUENCED, 24: _STREAM, 26: _DATAGRAM, 35: _DATAGRAM, 36: _RAW, 37: _STREAM,
         39: _RAW, 41: _DATAGRAM, 45: _DATAGRAM}  # fmt: skip


def _open(family: int, kind: int, protocol: int, _given: Given) -> str:
    with socket.socket(fileno=call(_SOCKET, family, kind, protocol)):
        return f"a socket of family {family}"


for _name, (_family, _kind, _protocol, _what) in _FAMILIES.items():
    register(Attack(name=f"socket-{_name}", description=_what,
                    run=functools.partial(_open, _family, _kind, _protocol)))  # fmt: skip


@attack("socket-rare", "any of eleven families that hardly anyone uses")
def rare(given: Given) -> str:
    """The first one that opens."""
    for family, kind in _RARE.items():
        try:
            return _open(family, kind, 0, given)
        except OSError:
            continue
    raise Refused("none opens")


@attack("socket-high-bits", "a vsock socket whose family only 64 bits can hold")
def high_bits(given: Given) -> str:
    """The kernel looks at the low half only; so must the filter."""
    return _open(40 | _HIGH_BIT, _STREAM, 0, given)


@attack("socket-filter", "hang compiled code on a socket, from a budget that the whole machine shares")
def socket_filter(_given: Given) -> str:
    """A filter that lets everything through."""
    instruction = struct.pack("=HBBI", 0x06, 0, 0, 0xFFFFFFFF)
    buffer = ctypes.create_string_buffer(instruction)
    program = struct.pack("@HxxxxxxP", 1, ctypes.addressof(buffer))
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as target:
        target.setsockopt(socket.SOL_SOCKET, _ATTACH_FILTER, program)
    return "attached"


@attack("own-filter", "load system-call filters, from the same budget")
def own_filter(_given: Given) -> str:
    """The kernel asks for the program itself last: EFAULT means that it would have been loaded."""
    return reach(_SECCOMP, 1, 0, 0)


@attack("terminals", "take the machine's terminals until nobody else can open one")
def terminals(_given: Given) -> str:
    """More than a sandbox has any use for, and far fewer than the machine has."""
    opened: list[int] = []
    try:
        for _ in range(_MANY_TERMINALS):
            # One by one: those that opened are closed even if the next does not.
            opened.append(os.open("/dev/ptmx", os.O_RDWR | os.O_NOCTTY))  # noqa: PERF401
        return f"{len(opened)} opened"
    finally:
        for descriptor in opened:
            os.close(descriptor)
