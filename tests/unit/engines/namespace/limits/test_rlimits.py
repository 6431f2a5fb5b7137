"""What the watchdog charges a sandbox for."""

from __future__ import annotations

from workbench.engines.namespace.limits.rlimits import RlimitGroup
from workbench.engines.proc import Memory

MIB = 2**20
ZYGOTE = 100 * MIB


def _charged(*tree: Memory) -> int:
    return RlimitGroup("g", ZYGOTE, {0: 0})._charged(list(tree))


def _warm(private: int) -> Memory:
    """A fork of the zygote: a quarter of what is shared among four, and pages of its own."""
    return Memory(ZYGOTE // 4 + private, private)


def test_pages_of_the_zygote_are_not_charged() -> None:
    assert _charged(_warm(MIB), _warm(50 * MIB)) == 51 * MIB


def test_pages_shared_among_its_own_processes_are_charged_once() -> None:
    shared = Memory(ZYGOTE // 4 + 450 * MIB, 0)
    assert _charged(_warm(MIB), shared, shared) == 901 * MIB


def test_many_small_processes_hide_no_more_than_the_size_of_the_zygote() -> None:
    executed = [Memory(10 * MIB, 10 * MIB)] * 100
    assert _charged(_warm(MIB), *executed) >= 1000 * MIB - ZYGOTE


def test_a_sandbox_that_is_gone_is_charged_nothing() -> None:
    assert _charged() == 0
    assert _charged(Memory(), Memory()) == 0
