"""AddressPolicy: which addresses may be connected to. Names and connections are left to the guard."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from dataclasses import dataclass

from workbench.errors import Denied

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

ALLOW_SETTING = "WORKBENCH_FETCH_ALLOW"

# Our own tables, by the registries of special addresses that IANA keeps: `is_global` of the library says another thing
# in each version of Python.
_REFUSED_V4 = tuple(
    (ipaddress.IPv4Network(network), what)
    for network, what in (
        ("0.0.0.0/8", "no address of a host"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared by a carrier's customers"),
        ("127.0.0.0/8", "loopback"),
        # A cloud's platform service, at an address that looks like anybody's.
        ("168.63.129.16/32", "a cloud's metadata service"),
        ("169.254.169.254/32", "a cloud's metadata service"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "kept for protocols"),
        ("192.0.2.0/24", "for documentation"),
        ("192.88.99.0/24", "a relay of 6to4"),
        ("192.168.0.0/16", "private"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
# NAT64: an IPv4 address, as hosts without IPv4 see it; judged by that.
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_LOCAL_NAT64 = ipaddress.IPv6Network("64:ff9b:1::/48")
_GLOBAL_V6 = (ipaddress.IPv6Network("2000::/3"), _NAT64)
_REFUSED_V6 = tuple(
    (ipaddress.IPv6Network(network), what)
    for network, what in (
        ("2001::/32", "a Teredo tunnel"),
        ("2001::/23", "kept for protocols"),
        ("2001:db8::/32", "for documentation"),
        ("2002::/16", "a 6to4 tunnel"),
        ("3fff::/20", "for documentation"),
        # Not within what is global, and named here for who reads the error.
        ("::/128", "no address of a host"),
        ("::1/128", "loopback"),
        ("::ffff:0:0/96", "an IPv4 address in the form of IPv6"),
        ("::/96", "an IPv4 address in the form of IPv6"),
        ("64:ff9b:1::/48", "a local form of NAT64"),
        ("fd00:ec2::254/128", "a cloud's metadata service"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
    )
)


@dataclass(frozen=True, slots=True)
class AddressPolicy:
    """Public addresses, and what else the operator allows."""

    allowed: tuple[Network, ...] = ()
    names: frozenset[str] = frozenset()
    """hosts that may be anywhere"""
    setting: str = ALLOW_SETTING
    """which allows more"""

    @classmethod
    def parse(cls, text: str, setting: str = ALLOW_SETTING) -> AddressPolicy:
        """Of addresses, networks and names, by commas; as the setting has them, which was checked when it was read."""
        networks, names = [], []
        for part in filter(None, (part.strip() for part in text.split(","))):
            try:
                networks.append(ipaddress.ip_network(part))
            except ValueError:
                names.append(part.lower())
        return cls(tuple(networks), frozenset(names), setting)

    def is_named(self, host: str) -> bool:
        """Whether the operator allowed this very host, as a name or as an address."""
        if host.lower() in self.names:
            return True
        try:
            address = ipaddress.ip_address(host)
        except ValueError:
            return False
        return any(address in network for network in self.allowed)

    def check(self, address: Address, host: str = "") -> None:
        """Whether one may connect to it; `host` is the name that led there.

        Raises:
            Denied: no; the message says why, and what permits it.
        """
        # BARRIER: a caller's URL would reach what only this machine and its neighbours can: its own services, a
        # cloud's metadata with its credentials; held by tests/unit/egress/test_policy.py.
        why = "" if host.lower() in self.names else self._objection(address)
        if why:
            where = f"{host} is at {address}" if host and host != str(address) else f"the address is {address}"
            raise Denied(
                f"{where}, which is {why}; only public addresses are connected to, and what {self.setting} of the "
                "server names besides",
                {"host": host or str(address), "address": str(address), "setting": self.setting},
            )

    def _objection(self, address: Address) -> str:
        if isinstance(address, ipaddress.IPv6Address) and address.scope_id is not None:
            return "of one interface of this machine"
        if not any(address in network for network in self.allowed):
            why = _special(address)
            if why:
                return why
        # Also what the operator allowed: who allows all of IPv6 does not mean the IPv4 addresses that hide in it.
        for inner in _embedded(address):
            why = self._objection(inner)
            if why:
                return f"{inner} within, {why}"
        return ""


def is_public(address: Address) -> bool:
    """Whether anybody may connect to it, whatever an operator allows."""
    return not AddressPolicy()._objection(address)  # noqa: SLF001 - the policy's own words on it


def _special(address: Address) -> str:
    """What it is, if it is not public."""
    if isinstance(address, ipaddress.IPv4Address):
        return next((what for network, what in _REFUSED_V4 if address in network), "")
    named = next((what for network, what in _REFUSED_V6 if address in network), "")
    return named or ("" if any(address in network for network in _GLOBAL_V6) else "reserved")


def _embedded(address: Address) -> Iterator[ipaddress.IPv4Address]:
    """IPv4 addresses that a packet to it would come out at."""
    if isinstance(address, ipaddress.IPv4Address):
        return
    number = int(address)
    # Mapped, compatible, translated, and both forms of NAT64; `::` and `::1` are not meant by them.
    last_four = number > 1 and (number >> 32) in (0, 0xFFFF, 0xFFFF_0000)
    if last_four or address in _NAT64 or address in _LOCAL_NAT64:
        yield ipaddress.IPv4Address(number & 0xFFFF_FFFF)
    elif address.sixtofour is not None:
        yield address.sixtofour
    elif address.teredo is not None:
        yield from address.teredo
