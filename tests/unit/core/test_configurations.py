"""What sessions may reach: changed version by version, and what that does to a sandbox."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.core.standins import World

from workbench.core import requests
from workbench.core.requests import ChangeConfiguration, ListConfigurations
from workbench.errors import Conflict, HostUnavailable, InvalidRequest, NotFound, QuotaExceeded, SandboxOff
from workbench.model.configuration import Choice, ConfigurationRecord, SandboxSwitches, SessionConfig
from workbench.model.ids import MountId, SandboxId, SessionId
from workbench.model.session import Session
from workbench.model.tier import LARGE, MEDIUM, Tier

ONE = SessionId("one")
_OFF = SessionConfig(sandbox=SandboxSwitches(enable=False))


@pytest.fixture
async def world() -> World:
    world = World()
    await world.bench().create_session(requests.CreateSession(session=ONE))
    return world


def _toolkit(name: str) -> Callable[[SessionConfig], SessionConfig]:
    return lambda config: replace(config, toolkits=Choice(enable=(name,)))


def _switch(*, on: bool) -> Callable[[SessionConfig], SessionConfig]:
    return lambda config: replace(config, sandbox=replace(config.sandbox, enable=on))


async def test_each_change_is_a_version_and_those_before_can_be_looked_at(world: World) -> None:
    configurations = world.bench().configurations
    assert (await configurations.get(ONE)).config_version == 1
    for number, name in enumerate(("a", "b", "c"), 2):
        changed = await configurations.change(ChangeConfiguration(session=ONE, change=_toolkit(name)))
        assert changed.config_version == number
    page = await configurations.history(ListConfigurations(session=ONE, limit=2))
    assert [(one.version, one.config.toolkits) for one in page.items] == [
        (4, Choice(enable=("c",))),
        (3, Choice(enable=("b",))),
    ]
    assert (page.next_before, page.total) == (3, 4)
    rest = await configurations.history(ListConfigurations(session=ONE, before=3, limit=2))
    assert ([one.version for one in rest.items], rest.next_before) == ([2, 1], None)


async def test_a_change_of_another_version_than_expected_is_refused_and_says_which_it_is(world: World) -> None:
    configurations = world.bench().configurations
    await configurations.change(ChangeConfiguration(session=ONE, change=_toolkit("a"), expected_version=1))
    with pytest.raises(Conflict, match="version 2 now") as refused:
        await configurations.change(
            ChangeConfiguration(session=ONE, change=_toolkit("b"), tier=LARGE, expected_version=1)
        )
    assert refused.value.context["config_version"] == "2"
    kept = await configurations.get(ONE)
    assert (kept.spec.config.toolkits, kept.spec.tier.name) == (Choice(enable=("a",)), "standard")


async def test_a_tier_comes_with_the_change_and_a_refused_one_changes_nothing(world: World) -> None:
    bench = world.bench()
    await bench.restart_kernel(requests.RestartKernel(session=ONE))
    ask = ChangeConfiguration(session=ONE, change=_toolkit("a"), tier=MEDIUM)
    changed = await bench.configurations.change(ask)
    assert (changed.spec.tier, changed.config_version, changed.begun) == (MEDIUM, 2, True)
    page = await bench.configurations.history(ListConfigurations(session=ONE))
    assert [one.tier for one in page.items] == ["medium", "standard"]
    world.host.fail["tier"] = QuotaExceeded("too much in use")
    with pytest.raises(QuotaExceeded):
        await bench.configurations.change(replace(ask, change=_toolkit("b"), tier=LARGE))
    assert (await bench.configurations.get(ONE)).config_version == 2


async def test_of_changes_at_once_none_is_lost(world: World) -> None:
    configurations = world.bench().configurations

    def one_more(config: SessionConfig) -> SessionConfig:
        return replace(config, preload=(*config.preload, f"TOOL_{len(config.preload)}"))

    ask = ChangeConfiguration(session=ONE, change=one_more)
    await asyncio.gather(*(configurations.change(ask) for _ in range(8)))
    kept = await configurations.get(ONE)
    assert (kept.config_version, len(kept.spec.config.preload)) == (9, 8)


async def test_a_change_by_another_while_the_tier_is_given_is_kept_as_well(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    configurations, given = world.bench().configurations, world.store.change_tier

    async def meanwhile(sandbox: SandboxId, tier: Tier, *, cold: bool) -> bool:
        monkeypatch.undo()
        await configurations.change(ChangeConfiguration(session=ONE, change=_toolkit("a")))
        return await given(sandbox, tier, cold=cold)

    monkeypatch.setattr(world.store, "change_tier", meanwhile)
    ask = ChangeConfiguration(session=ONE, change=lambda config: replace(config, search=False), tier=MEDIUM)
    changed = await configurations.change(ask)
    assert (changed.config_version, changed.spec.tier) == (3, MEDIUM)
    assert (changed.spec.config.toolkits, changed.spec.config.search) == (Choice(enable=("a",)), False)


async def test_a_change_between_two_looks_tells_no_version_twice(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    configurations, past = world.bench().configurations, world.store.past_configurations
    await configurations.change(ChangeConfiguration(session=ONE, change=_toolkit("a")))

    async def later(session: SessionId, before: int, limit: int) -> tuple[ConfigurationRecord, ...]:
        await configurations.change(ChangeConfiguration(session=ONE, change=_toolkit("b")))
        return await past(session, before, limit)

    monkeypatch.setattr(world.store, "past_configurations", later)
    page = await configurations.history(ListConfigurations(session=ONE))
    assert [one.version for one in page.items] == [2, 1]


async def test_nothing_runs_in_a_session_without_a_sandbox_and_switched_on_it_does(world: World) -> None:
    bench = world.bench()
    two = SessionId("two")
    await bench.create_session(requests.CreateSession(session=two, config=_OFF))
    for refused in (
        bench.perform(requests.RunCell(session=two, code="1")),
        bench.submit(requests.RunCommand(session=two, command="ls")),
        bench.restart_kernel(requests.RestartKernel(session=two)),
        bench.attach_kernel(requests.AttachKernel(session=two)),
        bench.branch(requests.BranchSession(session=two)),
        bench.undo(requests.UndoCells(session=two)),
        bench.read_file(requests.ReadFile(session=two, path="a")),
    ):
        with pytest.raises(SandboxOff, match="configured without a sandbox"):
            await refused
    assert world.host.sandboxes == {}
    await bench.configurations.change(ChangeConfiguration(session=two, change=_switch(on=True)))
    assert (await bench.restart_kernel(requests.RestartKernel(session=two))).state == "idle"


async def test_switched_off_its_sandbox_ends_and_that_is_told(world: World) -> None:
    bench = world.bench()
    await bench.restart_kernel(requests.RestartKernel(session=ONE))
    changed = await bench.configurations.change(ChangeConfiguration(session=ONE, change=_switch(on=False)))
    assert (changed.begun, changed.spec.config.sandbox.enable) == (False, False)
    told = await bench.describe_session(requests.DescribeSession(session=ONE))
    assert (told.state, told.detail) == ("lost", "its sandbox was switched off")


async def test_a_sandbox_that_others_share_is_not_switched_off(world: World) -> None:
    bench = world.bench()
    await bench.restart_kernel(requests.RestartKernel(session=ONE))
    await bench.branch(requests.BranchSession(session=ONE, branch=SessionId("twin")))
    with pytest.raises(Conflict, match="shares its sandbox with twin"):
        await bench.configurations.change(ChangeConfiguration(session=ONE, change=_switch(on=False)))


async def test_what_is_too_large_or_not_there_is_refused(world: World) -> None:
    configurations = world.bench().configurations
    many = Choice(enable=tuple(f"toolkit-{number}" for number in range(40_000)))
    with pytest.raises(InvalidRequest, match="at most 262144 are kept"):
        await configurations.change(
            ChangeConfiguration(session=ONE, change=lambda config: replace(config, toolkits=many))
        )
    with pytest.raises(InvalidRequest, match="1 to 100"):
        await configurations.history(ListConfigurations(session=ONE, limit=101))
    with pytest.raises(NotFound):
        await configurations.get(SessionId("none"))


async def test_who_branched_while_it_was_switched_off_keeps_the_sandbox(world: World) -> None:
    bench = world.bench()
    await bench.restart_kernel(requests.RestartKernel(session=ONE))
    sandbox = (await world.store.get(ONE)).sandbox
    alone = world.store.family

    async def family_as_it_was(mount: MountId) -> tuple[Session, ...]:
        found = await alone(mount)
        if not bench_has_branched:
            bench_has_branched.append(1)
            await world.bench().branch(requests.BranchSession(session=ONE, branch=SessionId("twin")))
        return found

    bench_has_branched: list[int] = []
    world.store.family = family_as_it_was  # type: ignore[method-assign]  # somebody comes in between
    changed = await bench.configurations.change(ChangeConfiguration(session=ONE, change=_switch(on=False)))
    assert (changed.begun, changed.last_loss) == (False, "its sandbox was switched off")
    twin = await world.store.get(SessionId("twin"))
    assert (twin.begun, twin.sandbox) == (True, sandbox)
    with pytest.raises(SandboxOff):
        await bench.branch(requests.BranchSession(session=ONE, branch=SessionId("other")))


async def test_a_host_that_does_not_answer_keeps_the_record_where_its_sandbox_may_live(world: World) -> None:
    bench = world.bench()
    await bench.restart_kernel(requests.RestartKernel(session=ONE))
    before = await world.store.get(ONE)
    world.host.fail["close"] = HostUnavailable("it does not answer")
    changed = await bench.configurations.change(ChangeConfiguration(session=ONE, change=_switch(on=False)))
    assert (changed.begun, changed.sandbox, changed.spec.config.sandbox.enable) == (True, before.sandbox, False)
    with pytest.raises(SandboxOff):
        await bench.perform(requests.RunCell(session=ONE, code="1"))
