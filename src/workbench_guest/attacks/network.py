"""Reaching what is not the sandbox's: the host's loopback, its sockets, the metadata address, any route at all.

No control sends a packet to anywhere but loopback: connecting a UDP socket only looks a route up.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct

from workbench_guest.attacks.registry import Given, Judge, Outside, Refused, attack

_METADATA, _TEST_NET, _TEST_NET6 = "169.254.169.254", "192.0.2.77", "2001:db8::77"
_GET_MTU, _SET_MTU = 0x8921, 0x8922
_WAIT_S = 2.0
_HOST = (Outside.PLAIN,)


def _route(family: int, address: str, port: int) -> str:
    with socket.socket(family, socket.SOCK_DGRAM) as sock:
        sock.connect((address, port))
        return f"a route to {address} from {sock.getsockname()[0]}"


@attack("network-metadata", "a route to the cloud's metadata address")
def metadata(_given: Given) -> str:
    """Where a cloud keeps a machine's credentials."""
    return _route(socket.AF_INET, _METADATA, 80)


@attack("network-internet", "a route to the internet")
def internet(_given: Given) -> str:
    """An address reserved for documentation stands in for all."""
    return _route(socket.AF_INET, _TEST_NET, 53)


@attack("network-internet6", "a route to the internet over IPv6")
def internet6(_given: Given) -> str:
    """The same in the newer family."""
    return _route(socket.AF_INET6, _TEST_NET6, 53)


def _banner(sock: socket.socket, address: tuple[str, int] | str) -> str:
    with sock:
        sock.settimeout(_WAIT_S)
        sock.connect(address)
        return sock.recv(200).decode(errors="replace")


@attack("network-host-loopback", "a service on the host's 127.0.0.1", judge=Judge.CANARY, outside=_HOST)
def host_loopback(given: Given) -> str:
    """Databases and control sockets that trust whoever is local."""
    return _banner(socket.socket(socket.AF_INET), ("127.0.0.1", given.tcp_port))


@attack("network-host-loopback6", "a service on the host's ::1", judge=Judge.CANARY, outside=_HOST)
def host_loopback6(given: Given) -> str:
    """The same in the newer family."""
    return _banner(socket.socket(socket.AF_INET6), ("::1", given.tcp6_port))


@attack("network-abstract-socket", "an abstract Unix socket of the host's", judge=Judge.CANARY, outside=_HOST)
def abstract_socket(given: Given) -> str:
    """It has a name but no file, so no mount hides it."""
    return _banner(socket.socket(socket.AF_UNIX), "\0" + given.abstract_name)


@attack("network-socket-file", "a Unix socket in the host's file system", judge=Judge.CANARY, outside=_HOST)
def socket_file(given: Given) -> str:
    """Such as a container daemon's."""
    return _banner(socket.socket(socket.AF_UNIX), given.socket_path)


@attack("network-interfaces", "see the host's network interfaces", outside=_HOST)
def interfaces(_given: Given) -> str:
    """Their names and, through them, the host's neighbours."""
    others = [name for _, name in socket.if_nameindex() if name != "lo"]
    if not others:
        raise Refused("only lo")
    return ", ".join(others)


@attack("network-configure", "change an interface (to what it already is)")
def configure(_given: Given) -> str:
    """Setting the MTU of lo needs power over the network namespace."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sock:
        current = fcntl.ioctl(sock, _GET_MTU, struct.pack("16si20x", b"lo", 0))
        fcntl.ioctl(sock, _SET_MTU, current)
    return "set the MTU of lo"


@attack("network-low-port", "listen on a privileged port")
def low_port(_given: Given) -> str:
    """Where a host keeps its own services; held for a moment only."""
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", encoding="ascii") as file:
        if int(file.read()) == 0 and os.geteuid() != 0:
            raise Refused("this host has no privileged ports")
    with socket.socket(socket.AF_INET) as sock:
        sock.bind(("127.0.0.1", 1))
        return "bound to port 1"


@attack("network-listen-on-host", "be reachable at the host's address", judge=Judge.SEEN, outside=_HOST)
def listen_on_host(given: Given) -> str:
    """The host tries the abstract name while this waits."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.bind(f"\0{given.marker}-listen")
        sock.listen(1)
        sock.settimeout(_WAIT_S / 2)
        try:
            sock.accept()[0].close()
        except TimeoutError:
            return "nobody came"
    return "someone came"
