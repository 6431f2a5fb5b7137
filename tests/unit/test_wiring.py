"""The whole service on a data folder: what it is put together of, and what it says about what it stands on."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from workbench.core import requests
from workbench.errors import NotFound
from workbench.model.access import Caller
from workbench.model.ids import ProjectId, SessionId
from workbench.settings import Settings
from workbench.wiring import SystemClock, free_memory_percent, open_service, open_workbench

ONE = SessionId("one")


def settings_at(folder: Path, **more: str) -> Settings:
    return Settings.from_env({"WORKBENCH_DATA_DIR": str(folder), **more})


async def test_the_workbench_of_the_command_line_is_that_of_the_default_project(short_dir: Path) -> None:
    settings = settings_at(short_dir)
    async with open_workbench(settings, {}) as bench:
        await bench.create_session(requests.CreateSession(session=ONE))
    async with open_service(settings, {}) as service:
        told = await service.workbench().describe_session(requests.DescribeSession(session=ONE))
        assert (told.state, told.session.spec.project) == ("cold", "default")
        with pytest.raises(NotFound):
            await service.workbench(ProjectId("other")).describe_session(requests.DescribeSession(session=ONE))


async def test_a_key_that_was_made_is_good_for_the_next_process(short_dir: Path) -> None:
    settings = settings_at(short_dir)
    async with open_service(settings, {}) as service:
        new = await service.access.create_key(requests.CreateKey(by=Caller()))
    async with open_service(settings, {}) as service:
        assert (await service.access.authenticate(new.presented)).key == new.key.id


async def test_the_caretaker_finds_nothing_to_do_in_an_empty_house(short_dir: Path) -> None:
    async with open_service(settings_at(short_dir), {}) as service:
        done = await service.caretaker.look()
        assert (done.ended, done.frozen, done.problems) == (0, 0, ())


async def test_without_a_host_it_is_ready_and_starts_none(short_dir: Path) -> None:
    async with open_service(settings_at(short_dir), {}) as service:
        assert await service.check() == {
            "records": "ok",
            "host": "ok: none runs yet; it is started with the first cell",
        }
    assert not (short_dir / "hosts").exists()


async def test_without_a_host_that_others_are_to_start_it_is_not_ready(short_dir: Path) -> None:
    async with open_service(settings_at(short_dir, WORKBENCH_START_HOST="false"), {}) as service:
        assert "no host listens" in (await service.check())["host"]


async def test_a_host_that_does_not_answer_is_told_within_seconds(
    short_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("workbench.wiring._CHECK_S", 0.2)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(short_dir / "host.sock"))
        silent.listen()
        async with asyncio.timeout(5), open_service(settings_at(short_dir), {}) as service:
            assert (await service.check())["host"].startswith("no answer within")


async def test_records_that_cannot_be_opened_are_told(short_dir: Path) -> None:
    (short_dir / "workbench.db").mkdir()
    async with open_service(settings_at(short_dir), {}) as service:
        assert "ok" not in (await service.check())["records"]


def test_later_times_sort_after_earlier_ones() -> None:
    clock = SystemClock()
    assert clock.after(-1) < clock.now_iso() < clock.after(1) < clock.after(86_400)


@pytest.mark.parametrize(
    ("said", "percent"),
    [
        ("MemTotal:  1000 kB\nMemFree:  1 kB\nMemAvailable:  250 kB\n", 25.0),
        ("MemTotal:  1000 kB\n", 100.0),
        ("what is this", 100.0),
        ("", 100.0),
    ],
)
def test_free_memory_is_what_programs_could_still_have(tmp_path: Path, said: str, percent: float) -> None:
    told = tmp_path / "meminfo"
    told.write_text(said)
    assert free_memory_percent(told) == percent
    assert free_memory_percent(tmp_path / "none") == 100.0
    assert 0.0 < free_memory_percent(Path("/proc/meminfo")) <= 100.0
