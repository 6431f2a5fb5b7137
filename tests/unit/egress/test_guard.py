"""The guard: one lookup, all of it checked, within its time."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Sequence
from ipaddress import ip_address

import pytest

from workbench.egress.guard import Guard, GuardedBackend, Resolver, SystemResolver
from workbench.egress.policy import AddressPolicy
from workbench.errors import Denied, UpstreamFailed


def resolver_of(*answers: Sequence[str] | OSError) -> tuple[Resolver, list[tuple[str, int]]]:
    """One answer after the other, and what was asked."""
    asked: list[tuple[str, int]] = []

    async def resolve(host: str, port: int) -> Sequence[str]:
        asked.append((host, port))
        answer = answers[len(asked) - 1]
        if isinstance(answer, OSError):
            raise answer
        return answer

    return resolve, asked


async def test_all_addresses_of_a_name_are_given_in_their_order() -> None:
    resolve, asked = resolver_of(["2606:4700::1", "1.1.1.1", "1.1.1.1"])
    found = await Guard(AddressPolicy(), resolve).addresses("a.example", 443, 1)
    assert found == (ip_address("2606:4700::1"), ip_address("1.1.1.1"))
    assert asked == [("a.example", 443)]


@pytest.mark.parametrize("place", [0, 1, 2])
async def test_one_forbidden_address_among_public_ones_refuses_the_name(place: int) -> None:
    addresses = ["1.1.1.1", "2606:4700::1"]
    addresses.insert(place, "10.0.0.1")
    resolve, _ = resolver_of(addresses)
    with pytest.raises(Denied, match=r"a\.example is at 10\.0\.0\.1"):
        await Guard(AddressPolicy(), resolve).addresses("a.example", 80, 1)


async def test_a_name_that_changes_its_address_is_checked_each_time() -> None:
    resolve, asked = resolver_of(["1.1.1.1"], ["127.0.0.1"])
    guard = Guard(AddressPolicy(), resolve)
    assert await guard.addresses("a.example", 80, 1) == (ip_address("1.1.1.1"),)
    with pytest.raises(Denied, match="loopback"):
        await guard.addresses("a.example", 80, 1)
    assert len(asked) == 2


async def test_an_address_is_not_looked_up() -> None:
    resolve, asked = resolver_of()
    guard = Guard(AddressPolicy(), resolve)
    assert await guard.addresses("1.1.1.1", 80, 1) == (ip_address("1.1.1.1"),)
    with pytest.raises(Denied):
        await guard.addresses("::1", 80, 1)
    assert not asked


@pytest.mark.parametrize(
    "answer", [socket.gaierror(socket.EAI_NONAME, "Name or service not known"), OSError("odd"), [], ["1.1.1.1", "x"]]
)
async def test_a_name_without_a_readable_address_is_an_upstream_failure(answer: Sequence[str] | OSError) -> None:
    resolve, _ = resolver_of(answer)
    with pytest.raises(UpstreamFailed, match=r"a\.example"):
        await Guard(AddressPolicy(), resolve).addresses("a.example", 80, 1)


async def test_a_lookup_that_hangs_is_given_up() -> None:
    async def hang(host: str, port: int) -> Sequence[str]:
        await asyncio.Event().wait()
        return []

    with pytest.raises(UpstreamFailed, match=r"within 0\.05 s"):
        await Guard(AddressPolicy(), hang).addresses("a.example", 80, 0.05)


async def test_unix_sockets_are_refused() -> None:
    resolve, _ = resolver_of()
    with pytest.raises(Denied, match="unix sockets"):
        await GuardedBackend(Guard(AddressPolicy(), resolve)).connect_unix_socket("/run/x.sock")


@pytest.mark.parametrize(
    "spelling",
    ["localhost", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "0177.0.0.1", "0", "::1", "::ffff:127.0.0.1"],
)
async def test_this_machine_is_refused_in_every_spelling_that_the_system_knows(spelling: str) -> None:
    resolver = SystemResolver()
    try:
        with pytest.raises(Denied):
            await Guard(AddressPolicy(), resolver).addresses(spelling, 80, 5)
    finally:
        resolver.close()


async def test_a_name_that_cannot_be_one_is_not_found() -> None:
    resolver = SystemResolver()
    try:
        with pytest.raises(UpstreamFailed):
            await Guard(AddressPolicy(), resolver).addresses("a" * 64 + ".example", 80, 5)
    finally:
        resolver.close()


async def test_a_scope_that_the_system_tells_beside_the_address_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    def told(*_: object, **__: object) -> list[object]:
        return [(socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("2606:4700::1", 80, 0, 2))]

    monkeypatch.setattr(socket, "getaddrinfo", told)
    resolver = SystemResolver()
    try:
        with pytest.raises(Denied, match="one interface"):
            await Guard(AddressPolicy(), resolver).addresses("a.example", 80, 5)
    finally:
        resolver.close()


async def test_lookups_that_hang_take_no_thread_from_anybody_else(monkeypatch: pytest.MonkeyPatch) -> None:
    let_go = threading.Event()
    begun: list[str] = []

    def hang(host: str, *_: object, **__: object) -> list[object]:
        begun.append(host)
        assert let_go.wait(30)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    resolver = SystemResolver()
    guard = Guard(AddressPolicy(), resolver)
    try:
        ends = await asyncio.gather(
            *(guard.addresses(f"{n}.example", 80, 0.2) for n in range(200)), return_exceptions=True
        )
        assert all(isinstance(end, UpstreamFailed) for end in ends)
        assert await asyncio.wait_for(asyncio.to_thread(lambda: "free"), 5) == "free"
        assert len(begun) <= 16
    finally:
        let_go.set()
        resolver.close()
