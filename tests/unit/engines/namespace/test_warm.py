"""When a warm zygote is grown, shared, done without and ended."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any, cast

import pytest

from workbench.engines.namespace import warm as warm_module
from workbench.engines.namespace.warm import LEAST_FREE_BYTES, WarmZygotes
from workbench.engines.namespace.zygote import Zygote
from workbench.errors import SandboxUnavailable
from workbench.model.image import Image, WarmSet


class Plain:
    """A zygote that grows others without any process; mocked at the edge of the engine's processes."""

    def __init__(self, late: Path) -> None:
        self.image = Image(
            name="i", digest="d", python="p", roots=(), preload=(), late=str(late),
            warm=(WarmSet(name="torch", modules=("torch",)),),
        )  # fmt: skip
        self.grown: list[Plain] = []
        self.grown_from: Plain | None = None
        self.alive = True
        self.pid = 1
        self.fails = False
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()

    async def grow(self, modules: tuple[str, ...]) -> Plain:
        assert modules == ("torch",)
        await self.may_go_on.wait()
        if self.fails:
            raise SandboxUnavailable("it does not import")
        one = Plain(Path(self.image.late))
        one.grown_from = self
        self.grown.append(one)
        return one

    def check(self) -> bool:
        return self.alive

    def end(self) -> None:
        self.alive = False


@pytest.fixture
def late(tmp_path: Path) -> Path:
    path = tmp_path / "late.json"
    path.touch()
    return path


def zygotes(plain: Plain, **options: Any) -> WarmZygotes:
    async def current() -> Zygote:
        return cast("Zygote", plain)

    return WarmZygotes(current, **{"free_bytes": lambda: LEAST_FREE_BYTES, **options})


async def test_those_who_ask_at_once_share_one_and_so_do_those_who_come_later(late: Path) -> None:
    plain = Plain(late)
    warm = zygotes(plain)
    first = await asyncio.gather(*(warm.get("torch") for _ in range(5)))
    assert {id(one) for one in (*first, await warm.get("torch"))} == {id(one) for one in plain.grown}
    assert len(plain.grown) == 1
    await warm.aclose()
    assert not plain.grown[0].alive


async def test_what_has_not_arrived_or_is_unknown_is_served_by_the_plain_one_at_once(late: Path) -> None:
    plain = Plain(late)
    warm = zygotes(plain)
    assert await warm.get("jax") is None
    late.unlink()
    assert await warm.get("torch") is None
    assert not plain.grown
    late.touch()
    assert await warm.get("torch") is not None, "from the moment that it is there"


async def test_where_memory_is_short_none_is_grown(late: Path) -> None:
    plain = Plain(late)
    assert await zygotes(plain, free_bytes=lambda: LEAST_FREE_BYTES - 1).get("torch") is None
    assert not plain.grown


async def test_what_failed_is_not_waited_for_again_at_once(late: Path) -> None:
    plain = Plain(late)
    plain.fails = True
    warm = zygotes(plain)
    assert await warm.get("torch") is None
    plain.fails = False
    assert await warm.get("torch") is None
    assert not plain.grown


async def test_who_has_waited_long_enough_goes_on_and_the_next_one_has_it(
    late: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(warm_module, "_MOST_WAIT_S", 0.01)
    plain = Plain(late)
    plain.may_go_on.clear()
    warm = zygotes(plain)
    assert await warm.get("torch") is None
    plain.may_go_on.set()
    monkeypatch.setattr(warm_module, "_MOST_WAIT_S", 10.0)
    assert id(await warm.get("torch")) == id(plain.grown[0])


async def test_one_that_is_being_grown_is_given_up_when_the_engine_closes(late: Path) -> None:
    plain = Plain(late)
    plain.may_go_on.clear()
    warm = zygotes(plain)
    asking = asyncio.create_task(warm.get("torch"))
    while not warm._growing:
        await asyncio.sleep(0)
    await warm.aclose()
    assert await asking is None


async def test_it_ends_when_nobody_asks_or_its_own_plain_one_was_replaced(late: Path) -> None:
    plain = Plain(late)
    warm = zygotes(plain, idle_s=0.0)
    await warm.get("torch")
    began = time.monotonic()
    while warm.pids and time.monotonic() - began < 10:
        warm.retire(cast("Zygote", plain), lambda _: False)
    assert (warm.pids, plain.grown[0].alive) == ({}, False)
    warm = zygotes(plain)
    await warm.get("torch")
    warm.retire(cast("Zygote", plain), lambda _: False)
    assert warm.pids
    warm.retire(cast("Zygote", Plain(late)), lambda _: False)
    assert not warm.pids


async def test_one_that_died_is_grown_again(late: Path) -> None:
    plain = Plain(late)
    warm = zygotes(plain)
    await warm.get("torch")
    plain.grown[0].alive = False
    assert id(await warm.get("torch")) == id(plain.grown[1])
