"""Which addresses may be connected to: each range that is not public by one from its beginning and its end."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from workbench.egress.policy import AddressPolicy, is_public
from workbench.errors import Denied

PUBLIC = AddressPolicy()

REFUSED_V4 = {
    "no address of a host": ["0.0.0.0", "0.255.255.255"],
    "private": ["10.0.0.0", "10.255.255.255", "172.16.0.0", "172.31.255.255", "192.168.0.0", "192.168.255.255"],
    "carrier": ["100.64.0.0", "100.127.255.255", "100.100.100.200"],
    "loopback": ["127.0.0.1", "127.255.255.255"],
    "metadata": ["169.254.169.254", "168.63.129.16"],
    "link-local": ["169.254.0.0", "169.254.255.255", "169.254.170.2"],
    "kept for protocols": ["192.0.0.0", "192.0.0.192", "192.0.0.255"],
    "documentation": ["192.0.2.0", "192.0.2.255", "198.51.100.0", "198.51.100.255", "203.0.113.0", "203.0.113.255"],
    "6to4": ["192.88.99.0", "192.88.99.255"],
    "benchmarks": ["198.18.0.0", "198.19.255.255"],
    "multicast": ["224.0.0.0", "239.255.255.255"],
    "reserved": ["240.0.0.0", "255.255.255.255"],
}
REFUSED_V6 = {
    "no address of a host": ["::"],
    "loopback": ["::1"],
    "form of IPv6": ["::ffff:127.0.0.1", "::ffff:8.8.8.8", "::7f00:1", "::8.8.8.8", "::2"],
    "reserved": ["::ffff:0:127.0.0.1", "100::1", "1000::", "4000::", "5f00::1", "200::", "64:ff9b:2::1", "fe00::1"],
    "local form of NAT64": ["64:ff9b:1::", "64:ff9b:1::808:808", "64:ff9b:1:ffff:ffff:ffff:ffff:ffff"],
    "Teredo": ["2001::", "2001:0:ffff:ffff:ffff:ffff:ffff:ffff"],
    "kept for protocols": ["2001:1::1", "2001:2::1", "2001:10::1", "2001:20::1", "2001:1ff:ffff::1"],
    "documentation": ["2001:db8::", "2001:db8:ffff:ffff::1", "3fff::", "3fff:fff:ffff::1"],
    "6to4": ["2002::", "2002:808:808::1", "2002:7f00:1::", "2002:ffff::1"],
    "private": ["fc00::", "fd00::1", "fd20:ce::254", "fdff:ffff::1", "fec0::1", "feff::1"],
    "metadata": ["fd00:ec2::254"],
    "link-local": ["fe80::", "fe80::1", "febf:ffff::1"],
    "multicast": ["ff00::", "ff02::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"],
}
REFUSED = [(one, what) for table in (REFUSED_V4, REFUSED_V6) for what, ones in table.items() for one in ones]


@pytest.mark.parametrize(("text", "what"), REFUSED)
def test_an_address_that_is_not_public_is_refused_and_said_what_it_is(text: str, what: str) -> None:
    with pytest.raises(Denied, match=what) as caught:
        PUBLIC.check(ip_address(text), "a.example")
    assert caught.value.context == {
        "host": "a.example", "address": str(ip_address(text)), "setting": "WORKBENCH_FETCH_ALLOW",
    }  # fmt: skip
    assert f"a.example is at {ip_address(text)}" in caught.value.message
    assert "WORKBENCH_FETCH_ALLOW" in caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        "1.0.0.0", "8.8.8.8", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0", "126.255.255.255",
        "128.0.0.0", "168.63.129.15", "168.63.129.17", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
        "192.0.1.0", "192.0.3.0", "192.88.98.255", "192.88.100.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
        "198.20.0.0",
        "198.51.99.255", "198.51.101.0", "203.0.112.255", "203.0.114.0", "223.255.255.255",
        "2000::1", "2001:200::1", "2001:4860:4860::8888", "2001:db7:ffff::1", "2001:db9::1", "2001:ffff::1", "2003::1",
        "2606:4700::1111", "2a00:1450::1", "3ffe:ffff::1", "3fff:1000::1", "64:ff9b::8.8.8.8",
    ],
)  # fmt: skip
def test_a_public_address_may_be_connected_to(text: str) -> None:
    PUBLIC.check(ip_address(text))


@pytest.mark.parametrize("inner", [one for ones in REFUSED_V4.values() for one in ones])
def test_a_forbidden_address_is_refused_behind_nat64(inner: str) -> None:
    with pytest.raises(Denied, match=f"{inner} within"):
        PUBLIC.check(ip_address(f"64:ff9b::{inner}"))


@pytest.mark.parametrize(
    "text",
    [
        "::ffff:127.0.0.1", "::127.0.0.1", "::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b:1::127.0.0.1",
        "2002:7f00:1::", "2001:0:7f00:1::f7f7:f7f7", "2001:0:808:808::80ff:fffe",
    ],
)  # fmt: skip
def test_who_allows_all_of_ipv6_has_not_allowed_the_loopback_that_hides_in_it(text: str) -> None:
    with pytest.raises(Denied, match=r"127.0.0.1 within, loopback"):
        AddressPolicy.parse("::/0").check(ip_address(text))


@pytest.mark.parametrize("text", ["::ffff:8.8.8.8", "64:ff9b:1::808:808", "2002:808:808::1", "fd00::1"])
def test_who_allows_all_of_ipv6_has_allowed_what_leads_to_public_or_allowed_addresses(text: str) -> None:
    AddressPolicy.parse("::/0").check(ip_address(text))


@pytest.mark.parametrize("text", ["fe80::1%eth0", "::1%lo", "2001:4860::1%2"])
@pytest.mark.parametrize("allowed", ["", "::/0"])
def test_an_address_of_one_interface_is_refused_whatever_is_allowed(text: str, allowed: str) -> None:
    with pytest.raises(Denied, match="one interface"):
        AddressPolicy.parse(allowed).check(ip_address(text))


def test_what_is_allowed_may_be_connected_to_and_its_neighbour_may_not() -> None:
    policy = AddressPolicy.parse("127.0.0.2, 10.1.0.0/16,fd00:1::/64")
    for good in ("127.0.0.2", "10.1.255.255", "fd00:1::7", "64:ff9b::10.1.0.1", "8.8.8.8"):
        policy.check(ip_address(good))
    for bad in ("127.0.0.1", "127.0.0.3", "10.2.0.0", "fd00:1:0:1::7", "::ffff:127.0.0.2", "64:ff9b::10.2.0.0"):
        with pytest.raises(Denied):
            policy.check(ip_address(bad))


def test_an_address_without_a_name_is_told_as_itself() -> None:
    with pytest.raises(Denied, match=r"^the address is 10\.0\.0\.1, which is private;"):
        PUBLIC.check(ip_address("10.0.0.1"), "10.0.0.1")


def test_a_host_that_is_named_may_be_anywhere_and_the_setting_that_allows_more_is_told() -> None:
    policy = AddressPolicy.parse("Wiki.corp.example, 10.1.0.0/16", "WORKBENCH_TOOLKITS_ALLOW")
    policy.check(ip_address("192.168.0.1"), "wiki.CORP.example")
    with pytest.raises(Denied, match="WORKBENCH_TOOLKITS_ALLOW"):
        policy.check(ip_address("192.168.0.1"), "other.corp.example")
    hosts = ("wiki.corp.example", "10.1.2.3", "10.2.0.1", "8.8.8.8", "x.example")
    assert [host for host in hosts if policy.is_named(host)] == ["wiki.corp.example", "10.1.2.3"]


@pytest.mark.parametrize(
    ("address", "public"),
    [("93.184.216.34", True), ("127.0.0.1", False), ("10.1.2.3", False), ("2606:4700::1", True), ("fd00::1", False)],
)
def test_what_is_public_is_so_whatever_is_allowed(address: str, public: bool) -> None:
    assert is_public(ip_address(address)) is public
