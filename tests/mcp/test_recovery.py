"""Whatever goes wrong, `next` gets out of it: a script that knows no tool's name acts on nothing else.

Only the first call of each test names a tool, as the one that got into trouble.
"""

from __future__ import annotations

import contextlib
import os
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from mcp.client import Client
from tests.mcp.conftest import Connect

from workbench.core import requests
from workbench.mcp.families import Family
from workbench.model.ids import SessionId
from workbench.settings import Settings
from workbench.wiring import open_service

MOST_STEPS = 6
Said = dict[str, Any]


@dataclass(frozen=True)
class Way:
    """A family that runs things, and the others that are visible beside it."""

    runner: Family
    beside: tuple[Family, ...] = ()

    @property
    def families(self) -> tuple[Family, ...]:
        return (self.runner, *self.beside)

    def cell(self, session: str, code: str, **more: Any) -> tuple[str, Said]:
        """A call that runs code."""
        if self.runner is Family.WORKBENCH:
            return "COMPOSIO_REMOTE_WORKBENCH", {"session_id": session, "code_to_execute": code}
        return "execute_code", {"session_id": session, "code": code, **more}

    def command(self, session: str, line: str) -> tuple[str, Said]:
        """A call that runs a command."""
        tool = "COMPOSIO_REMOTE_BASH_TOOL" if self.runner is Family.WORKBENCH else "execute_terminal"
        return tool, {"session_id": session, "command": line}


WAYS = {
    "workbench": Way(Family.WORKBENCH),
    "sandbox": Way(Family.SANDBOX),
    "workbench-kernel": Way(Family.WORKBENCH, (Family.KERNEL,)),
    "sandbox-kernel": Way(Family.SANDBOX, (Family.KERNEL,)),
    "all-by-workbench": Way(Family.WORKBENCH, (Family.SANDBOX, Family.KERNEL)),
    "all-by-sandbox": Way(Family.SANDBOX, (Family.WORKBENCH, Family.KERNEL)),
}
every_way = pytest.mark.parametrize("way", WAYS.values(), ids=WAYS)
# For what takes long: the families that say different things.
some_ways = pytest.mark.parametrize("way", [WAYS["workbench"], WAYS["sandbox-kernel"]], ids=["workbench", "sandbox"])


def is_success(said: Said) -> bool:
    """By whichever word the answer has for it."""
    return bool(said["successful"] if "successful" in said else said["success"])


async def call(client: Client, tool: str, arguments: Said) -> Said:
    """One answer, which says how to go on unless it is a success."""
    answer = await client.call_tool(tool, arguments)
    said: Said | None = answer.structured_content
    assert said is not None
    if not is_success(said):
        assert set(said["next"]) == {"tool", "arguments"}, said
    return said


async def get_out(client: Client, first_tool: str, first_arguments: Said) -> list[Said]:
    """Call, and do what `next` says until something succeeds; all answers."""
    seen = {one.name for one in (await client.list_tools()).tools}
    answers = [await call(client, first_tool, first_arguments)]
    while not is_success(answers[-1]):
        assert len(answers) <= MOST_STEPS, answers
        step = answers[-1]["next"]
        assert step["tool"] in seen, step
        answers.append(await call(client, step["tool"], step["arguments"]))
    return answers


async def trouble(client: Client, first: tuple[str, Said]) -> Said:
    """Gets out of it; the first answer, which was not a success."""
    answers = await get_out(client, *first)
    assert len(answers) > 1, answers
    return answers[0]


@contextlib.asynccontextmanager
async def bench_of(settings: Settings) -> AsyncIterator[Any]:
    """The core behind the clients, for what only an owner does."""
    async with open_service(settings, os.environ) as service:
        yield service.workbench()


@pytest.fixture
async def session(settings: Settings) -> AsyncIterator[str]:
    """One with a variable in it; deleted afterwards, with its files."""
    name = SessionId(f"rec-{secrets.token_hex(4)}")
    async with bench_of(settings) as bench:
        await bench.create_session(requests.CreateSession(session=name))
        await bench.run_cell(requests.RunCell(session=name, code="kept = 41"))
        yield name
        with contextlib.suppress(Exception):
            await bench.delete_session(requests.DeleteSession(session=name))


async def assert_it_goes_on(client: Client, way: Way, session: str, expected: str = "42") -> None:
    said = await call(client, *way.cell(session, "kept + 1"))
    assert is_success(said)
    assert expected in str(said)


@every_way
async def test_out_of_a_session_that_never_was(connect: Connect, way: Way) -> None:
    async with connect(*way.families) as client:
        said = await trouble(client, way.cell("nobody-has-this", "6 * 7"))
        assert "nobody-has-this" in said["error"]


@every_way
async def test_out_of_a_word_that_no_session_can_have(connect: Connect, way: Way) -> None:
    async with connect(*way.families) as client:
        await trouble(client, way.command("Not A Session!", "true"))


@every_way
async def test_out_of_a_session_that_was_deleted(connect: Connect, way: Way, session: str, settings: Settings) -> None:
    async with connect(*way.families) as client:
        await assert_it_goes_on(client, way, session)
        async with bench_of(settings) as bench:
            await bench.delete_session(requests.DeleteSession(session=SessionId(session)))
        answers = await get_out(client, *way.cell(session, "'as meant'"))
        assert not is_success(answers[0])
        last = answers[-1]
        again = last["session_id"] if "session_id" in last else last["data"]["session"]["id"]
        assert is_success(await call(client, *way.cell(again, "'as meant'")))


@pytest.mark.parametrize("way", [one for one in WAYS.values() if one.runner is Family.SANDBOX], ids=str)
@pytest.mark.parametrize("code", ["import time; time.sleep(60)", "STUBBORN"], ids=["sleeps", "ignores interrupts"])
async def test_out_of_a_time_out(connect: Connect, way: Way, session: str, code: str) -> None:
    stubborn = "import time\nwhile True:\n    try:\n        while True: time.sleep(0.1)\n    except BaseException: pass"
    async with connect(*way.families) as client:
        said = await trouble(client, way.cell(session, code.replace("STUBBORN", stubborn), timeout=1))
        assert "TIMED_OUT" in said["error"]
        await assert_it_goes_on(client, way, session)


CRASHES = {
    "exit": "import os; os._exit(3)",
    "segfault": "import ctypes; ctypes.string_at(0)",
    "out of memory": "hungry = bytearray(3 * 2**30)",
}


@every_way
@pytest.mark.parametrize("code", CRASHES.values(), ids=CRASHES)
async def test_out_of_a_crash_with_all_variables(connect: Connect, way: Way, session: str, code: str) -> None:
    async with connect(*way.families) as client:
        await trouble(client, way.cell(session, code))
        await assert_it_goes_on(client, way, session)


@every_way
async def test_out_of_a_crash_of_which_no_snapshot_was_kept(
    connect: Connect, way: Way, session: str, settings: Settings
) -> None:
    async with connect(*way.families) as client:
        async with bench_of(settings) as bench:
            await bench.set_snapshots(requests.SetSnapshots(session=SessionId(session), on=False))
        answers = await get_out(client, *way.cell(session, "import os; os._exit(3)"))
        assert len(answers) > 1
        # The memory is gone, and the name with it: what is told is true, and the session can be used.
        await trouble(client, way.cell(session, "kept"))
        assert is_success(await call(client, *way.cell(session, "kept = 41")))
        await assert_it_goes_on(client, way, session)


@every_way
async def test_out_of_a_missing_file(connect: Connect, way: Way, session: str) -> None:
    async with connect(*way.families) as client:
        assert is_success(await call(client, *way.command(session, "echo 1,2 > /mnt/files/data.csv")))
        for first in (way.cell(session, "open('data.csv').read()"), way.command(session, "cat data.csv")):
            answers = await get_out(client, *first)
            # The step shows where files are, and the one that was meant is among them.
            assert "data.csv" in str(answers[-1])
        assert is_success(await call(client, *way.cell(session, "open('/mnt/files/data.csv').read()")))


FILLERS = {
    "closed": "for n in range(20):\n    with open(f'/home/user/part{n}', 'wb') as file: file.write(bytes(2**26))",
    "still open": "file = open('/home/user/part', 'wb')\nwhile True: file.write(bytes(2**24))",
}


@some_ways
@pytest.mark.parametrize("code", FILLERS.values(), ids=FILLERS)
async def test_out_of_a_full_disk_without_losing_a_byte(connect: Connect, way: Way, session: str, code: str) -> None:
    async with connect(*way.families) as client:
        said = await trouble(client, way.cell(session, code))
        assert "No space left" in str(said)
        assert is_success(await call(client, *way.cell(session, "open('/tmp/more', 'wb').write(bytes(2**27))")))
        counted = "import os; sum(os.path.getsize(os.path.join(at, f)) for top in ('/home/user', '/mnt/files/moved') "
        counted += "for at, _, names in os.walk(top) for f in names) // 2**20"
        assert "512" in str(await call(client, *way.cell(session, counted)))
        await assert_it_goes_on(client, way, session)


@some_ways
async def test_out_of_a_disk_that_a_command_filled(connect: Connect, way: Way, session: str) -> None:
    async with connect(*way.families) as client:
        # What programs look for where it is stays there; of two with one name both are kept.
        made = "mkdir -p ~/.cache ~/a /mnt/files/moved/home/user/a && head -c 5M /dev/zero > ~/.cache/hidden && "
        made += "echo older > /mnt/files/moved/home/user/a/big && head -c 300M /dev/zero > ~/a/big"
        assert is_success(await call(client, *way.command(session, made)))
        await trouble(client, way.command(session, "head -c 400M /dev/zero > /tmp/rest"))
        found = await call(client, *way.command(session, "ls -l ~/.cache/hidden; ls /mnt/files/moved/home/user/a"))
        assert is_success(found)
        assert "big~" in str(found)
        assert is_success(await call(client, *way.command(session, "head -c 100M /dev/zero > /tmp/more")))


@every_way
async def test_out_of_arguments_that_cannot_be_used(connect: Connect, way: Way, session: str) -> None:
    async with connect(*way.families) as client:
        for first in (way.cell(session, "1"), way.command(session, "true")):
            tool, arguments = first
            for wrong in ({}, {"session_id": session}, {**arguments, "nonsense": 1}, dict.fromkeys(arguments, 7)):
                answers = await get_out(client, tool, wrong)
                assert "cannot use these arguments" in answers[0]["error"]
        huge = await get_out(client, *way.cell(session, "#" * (4 * 2**20 + 1)))
        assert len(str(huge[0])) < 5000


@pytest.mark.parametrize("families", [tuple(Family), (Family.WORKBENCH,), (Family.WORKBENCH, Family.KERNEL)], ids=str)
async def test_out_of_it_on_a_sessions_own_address(
    connect: Connect, session: str, families: tuple[Family, ...]
) -> None:
    way = Way(families[0])
    async with connect(*families, own_session=session) as client:
        for first in (
            way.cell("gate", "import os; os._exit(3)"),
            way.cell("gate", "open('nowhere')"),
            way.command("gate", "cat nowhere"),
            ("COMPOSIO_REMOTE_WORKBENCH", {"session_id": "gate"}),
        ):
            await trouble(client, first)
            await assert_it_goes_on(client, way, "gate")


@pytest.mark.parametrize(
    "tool",
    ["interrupt_session", "restart_session", "undo_cells", "branch_session", "create_context", "list_variables"],
)
@pytest.mark.parametrize("families", [(Family.KERNEL,), (Family.WORKBENCH, Family.KERNEL), tuple(Family)], ids=str)
async def test_out_of_trouble_with_the_tools_of_the_kernel(
    connect: Connect, families: tuple[Family, ...], tool: str
) -> None:
    async with connect(*families) as client:
        for arguments in ({"session_id": "nobody-has-this"}, {"nonsense": 1}, {"session_id": 7}):
            await trouble(client, (tool, arguments))
