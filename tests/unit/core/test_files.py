"""Files by commands inside: what is asked how often, what is believed, and what is told when the place fails."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from dataclasses import replace

import pytest
from tests.unit.core.standins import World

from workbench.contracts.host import CommandOrder, gone_reason
from workbench.core.files import inside
from workbench.core.requests import CreateSession, FindPackages, ListCells, ReadFile, WriteFile
from workbench.errors import Conflict, InvalidRequest, NotFound, QuotaExceeded, SandboxUnavailable
from workbench.model.execution import CommandResult, MemoryState, Outcome, Text
from workbench.model.ids import SessionId

ONE = SessionId("one")
WRITE = WriteFile(session=ONE, path="a", data=b"12")
READ = ReadFile(session=ONE, path="a")


@pytest.fixture
async def world() -> World:
    made = World()
    await made.bench().create_session(CreateSession(session=ONE))
    return made


def answering(world: World, change: Callable[[str, CommandResult], CommandResult]) -> None:
    """Commands end as `change` has it."""
    run = world.host.run_command

    async def changed(order: CommandOrder) -> CommandResult | None:
        end = await run(order)
        return None if end is None else change(order.command.command, end)

    world.host.run_command = changed  # type: ignore[method-assign]


def printing(world: World, *pages: str) -> None:
    """Each next command prints the next page."""
    left = list(pages)
    answering(world, lambda _, end: replace(end, stdout=Text(text=left.pop(0))))


async def test_a_file_is_one_command_that_is_forgotten_and_in_no_history(world: World) -> None:
    written = await world.bench().write_file(WRITE)
    assert (written.path, written.size) == ("/home/user/a", 2)
    assert world.host.asked[-3:] == ["command", "accepted", "forget"]
    assert (await world.bench().list_cells(ListCells(session=ONE))).cells == ()


async def test_a_long_file_goes_in_parts_and_is_renamed_with_the_last(world: World) -> None:
    await world.bench().write_file(replace(WRITE, data=b"x" * 200_000))
    commands = [command for _, command in world.host.ran]
    assert len(commands) == 4
    assert max(len(command) for command in commands) < 90_000
    assert [" mv -fT " in command for command in commands] == [False, False, False, True]


async def test_a_lost_answer_is_asked_for_again_and_nothing_runs_twice(world: World) -> None:
    await world.bench().write_file(WRITE)
    run, calls = world.host.run_command, []

    async def losing(order: CommandOrder) -> CommandResult | None:
        calls.append(order.command.id)
        if len(calls) == 1:
            await run(order)
            world.host.lose_answers_of.append("command")
            await world.host._answered("command")
        return await run(order)

    world.host.run_command = losing  # type: ignore[method-assign]
    await world.bench().write_file(WRITE)
    assert len(calls) == 2
    assert len(set(calls)) == 1
    assert len(world.host.ran) == 2


async def test_a_sandbox_that_was_gone_before_is_made_anew(world: World) -> None:
    await world.bench().write_file(WRITE)
    world.host.die()
    await world.bench().write_file(WRITE)
    assert len(world.host.made) == 2


async def test_a_sandbox_that_ends_under_it_is_told_and_it_is_not_tried_again(world: World) -> None:
    def lost(_: str, end: CommandResult) -> CommandResult:
        receipt = replace(end.receipt, state=MemoryState.LOST, reason="the sandbox ended: disk full")
        return replace(end, outcome=Outcome.LOST, exit_code=None, receipt=receipt)

    answering(world, lost)
    with pytest.raises(SandboxUnavailable) as told:
        await world.bench().write_file(WRITE)
    assert gone_reason(told.value) == "the sandbox ended: disk full"
    assert sum("base64" in command for _, command in world.host.ran) == 1


async def test_a_command_that_takes_too_long_is_an_error_that_can_be_tried_again(world: World) -> None:
    answering(world, lambda _, end: replace(end, outcome=Outcome.TIMED_OUT, exit_code=143, explanation="too long"))
    with pytest.raises(SandboxUnavailable, match="too slow") as told:
        await world.bench().read_file(READ)
    assert told.value.retryable
    assert gone_reason(told.value) is None


async def test_one_that_is_called_off_ends_before_what_is_left_of_it_is_removed(world: World) -> None:
    run, begun = world.host.run_command, asyncio.Event()

    async def slow(order: CommandOrder) -> CommandResult | None:
        end = await run(order)
        if "base64 -d" in order.command.command:
            begun.set()
            await asyncio.Event().wait()
        return end

    world.host.run_command = slow  # type: ignore[method-assign]
    writing = asyncio.create_task(world.bench().write_file(WRITE))
    await begun.wait()
    world.host.asked.clear()
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    steps = [one for one in world.host.asked if one in ("interrupt command", "wait command", "forget", "command")]
    assert steps == ["interrupt command", "wait command", "forget", "command", "forget"]
    assert "rm -f" in world.host.ran[-1][1]


async def test_many_slow_steps_end_in_bounded_time(world: World) -> None:
    whole = base64.b64encode(b"a" * 29_250).decode()
    answering(
        world,
        lambda _, end: replace(
            end,
            stdout=Text(text=f"regular file|0|1:2:3\n{whole}"),
            receipt=replace(end.receipt, wall_s=25.0),
        ),
    )
    with pytest.raises(SandboxUnavailable, match="too slow"):
        await world.bench().read_file(READ)
    assert len(world.host.ran) < 10


@pytest.mark.parametrize(
    ("stderr", "error", "words"),
    [
        ("cat: write error: No space left on device\n", QuotaExceeded, "no room"),
        ("mkdir: cannot create directory '/x': Permission denied\n", InvalidRequest, "write below /home/user"),
        ("mkdir: cannot create directory 'a: b': File exists\n", InvalidRequest, "a file is where a folder"),
        ("", InvalidRequest, "exit code 1"),
    ],
)
async def test_why_it_cannot_be_written_is_told_and_the_rest_is_removed(
    world: World, stderr: str, error: type[Exception], words: str
) -> None:
    answering(world, lambda _, end: replace(end, outcome=Outcome.RAISED, exit_code=1, stderr=Text(text=stderr)))
    with pytest.raises(error, match=words):
        await world.bench().write_file(WRITE)
    assert 'rm -f -- "$t"' in world.host.ran[-1][1]


async def test_a_file_in_several_parts_is_read_as_one(world: World) -> None:
    data = bytes(range(250)) * 200
    parts = [base64.b64encode(data[start : start + 29_250]).decode() for start in range(0, 50_000, 29_250)]
    printing(world, *[f"regular file|50000|1:2:3.4\n{part}" for part in parts])
    assert (await world.bench().read_file(READ)).data == data


@pytest.mark.parametrize(
    ("pages", "error"),
    [
        ([""], InvalidRequest),
        (["regular file"], InvalidRequest),
        (["regular file|-1|1:2:3\nYQ=="], InvalidRequest),
        (["regular file|" + "9" * 5000 + "|1:2:3\nYQ=="], InvalidRequest),
        (["regular file|\u0661|1:2:3\nYQ=="], InvalidRequest),
        (["regular file|1|1:2:3\n%%%"], InvalidRequest),
        (["regular file|1|1:2:3\nYWI="], Conflict),
        (["regular file|9999999999|1:2:3\nYQ=="], InvalidRequest),
        ([f"regular file|29251|1:2:3\n{'AAAA' * 9750}", "regular file|29251|1:2:4\nAA=="], Conflict),
    ],
)
async def test_nothing_that_a_bent_sandbox_prints_is_believed(
    world: World, pages: list[str], error: type[Exception]
) -> None:
    printing(world, *pages)
    with pytest.raises(error):
        await world.bench().read_file(READ)


async def test_what_never_ends_is_not_read_beyond_the_limit(world: World) -> None:
    answering(world, lambda _, end: replace(end, stdout=Text(text=f"regular file|0|1:2:3\n{'AAAA' * 9750}")))
    with pytest.raises(InvalidRequest, match="at most 100,000"):
        await world.bench().read_file(replace(READ, most_bytes=100_000))
    assert len(world.host.ran) == 4


async def test_a_file_without_a_session_is_not_found(world: World) -> None:
    with pytest.raises(NotFound) as told:
        await world.bench().read_file(replace(READ, session=SessionId("nobody")))
    assert "path" not in told.value.context


@pytest.mark.parametrize(
    ("path", "whole"),
    [
        ("a", "/home/user/a"),
        ("./a//b/../c", "/home/user/a/c"),
        ("~/a", "/home/user/a"),
        ("//tmp/a", "/tmp/a"),
        ("../../../../etc/passwd", "/etc/passwd"),
    ],
)
def test_a_path_is_absolute_or_begins_at_home(path: str, whole: str) -> None:
    assert inside(path) == whole


@pytest.mark.parametrize("path", ["", "a\0", "x" * 5000, "\ud800"])
def test_what_can_be_no_path_is_refused(path: str) -> None:
    with pytest.raises(InvalidRequest):
        inside(path)


@pytest.mark.parametrize("path", ["a/", "/", ".", "~", "/home/user"])
def test_a_new_file_is_not_named_like_a_folder(path: str) -> None:
    with pytest.raises(InvalidRequest, match="is a folder"):
        inside(path, is_new=True)


@pytest.mark.parametrize("name", ["", "a b", "$(x)", "-r", "a;b", "../a", "x" * 200])
async def test_what_is_no_name_of_a_package_reaches_no_shell(world: World, name: str) -> None:
    with pytest.raises(InvalidRequest, match="not the name of a package"):
        await world.bench().find_packages(FindPackages(session=ONE, names=(name,)))
    assert world.host.ran == []


@pytest.mark.parametrize("text", ["", "[]", "no"])
async def test_a_python_that_answers_strangely_is_an_error(world: World, text: str) -> None:
    printing(world, text)
    with pytest.raises(SandboxUnavailable):
        await world.bench().find_packages(FindPackages(session=ONE, names=("numpy",)))
