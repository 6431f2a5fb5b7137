"""The proof of `workbench doctor --prove`: no attack gets through, enough of them count, and it can fail."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest
from tests.conftest import MakeEngineOptions

from workbench.contracts.engine import SandboxSpec
from workbench.doctor.accepted import ACCEPTED, ACCEPTED_WHERE_WATCHED
from workbench.doctor.proof import prove, render_json, render_table
from workbench.doctor.rows import Result, Row, Surroundings, Verdict, counted, is_open, row
from workbench.engines.namespace.engine import NamespaceEngine
from workbench.engines.process import ProcessEngine
from workbench.errors import InvalidRequest
from workbench.model.capability import Barrier, Grade
from workbench.model.ids import new_process_id, new_sandbox_id
from workbench.model.image import Image
from workbench.model.process import ProcessSpec
from workbench.model.tier import STANDARD
from workbench_guest.attacks.registry import Attack, Judge, all_attacks
from workbench_guest.confine.seccomp import DENIED

pytestmark = [pytest.mark.isolation, pytest.mark.timeout(300)]

# Measured here: 235 as root and 193 as an ordinary user, who lacks the rights for the other controls.
_LEAST_COUNTED_AS_ROOT, _LEAST_COUNTED_AS_USER = 220, 180
# What an engine without walls must be found guilty of, whoever runs it.
_CERTAIN_WITHOUT_WALLS = (
    "unshare", "clone-user", "ptrace", "io_uring_setup", "keyctl", "personality", "new-calls", "foreign-calls",
    "process_vm_readv", "network-host-loopback", "network-abstract-socket", "network-socket-file", "host-file",
    "other-session", "backstage", "ipc-shared-memory", "ipc-posix-memory", "proc-host-processes", "signal-host",
    "tmp-shared", "new-privileges", "sys-kernel", "host-name", "open-files",
)  # fmt: skip
_NAMED_BY_BARRIERS = ("files-setuid", "files-device", "backstage", "descriptors", "pid1-mem", "pid1-fd", "proc-kcore",
                      "files-fill-closed")  # fmt: skip


def _proven(options: MakeEngineOptions, folder: Path, image: Image) -> tuple[Row, ...]:
    async def run() -> tuple[Row, ...]:
        engine = NamespaceEngine(options(folder))
        try:
            await engine.start()
            return await prove(engine, image, folder / "files")
        finally:
            await engine.aclose()

    return asyncio.run(run())


@pytest.fixture(scope="module")
def rows(
    make_engine_options: MakeEngineOptions, tmp_path_factory: pytest.TempPathFactory, image: Image
) -> tuple[Row, ...]:
    folder = tmp_path_factory.mktemp("p")
    found = _proven(make_engine_options, folder, image)
    assert os.listdir(folder / "files") == []
    return found


class TestProof:
    """One run of all attacks, looked at from several sides."""

    def test_no_attack_gets_through(self, rows: tuple[Row, ...]) -> None:
        assert not is_open(rows), render_table(tuple(row for row in rows if row.verdict is Verdict.OPEN))

    def test_enough_attacks_succeed_outside_to_count(self, rows: tuple[Row, ...]) -> None:
        least = _LEAST_COUNTED_AS_ROOT if os.geteuid() == 0 else _LEAST_COUNTED_AS_USER
        assert counted(rows) >= least, render_table(rows)

    def test_a_counted_row_names_the_control_that_succeeded(self, rows: tuple[Row, ...]) -> None:
        for one in rows:
            if one.verdict is not Verdict.NOT_COUNTED:
                assert one.control.startswith(("plain: ", "namespaces: ")), one

    def test_a_row_that_is_accepted_or_not_counted_says_why(self, rows: tuple[Row, ...]) -> None:
        for one in rows:
            if one.verdict in (Verdict.ACCEPTED, Verdict.NOT_COUNTED):
                assert one.reason, one

    def test_nothing_of_it_is_left_on_the_host(self, rows: tuple[Row, ...]) -> None:
        assert rows
        for folder in ("/tmp", "/dev/shm"):
            left = [name for name in os.listdir(folder) if name.startswith("wbp-")]
            mine = [name for name in left if os.stat(f"{folder}/{name}").st_uid == os.geteuid()]
            assert not mine, folder

    def test_it_can_be_read_by_people_and_by_programs(self, rows: tuple[Row, ...]) -> None:
        assert f"{counted(rows)} attacks counted" in render_table(rows).splitlines()[-1]
        assert '"open": []' in render_json(rows)


def test_every_denied_system_call_has_a_row() -> None:
    assert not DENIED.keys() - all_attacks().keys()


def test_every_row_that_a_barrier_names_exists() -> None:
    assert not set(_NAMED_BY_BARRIERS) - all_attacks().keys()


def test_everything_accepted_is_an_attack_and_in_the_security_notes() -> None:
    names = {*ACCEPTED, *ACCEPTED_WHERE_WATCHED}
    assert not names - all_attacks().keys()
    notes = (Path(__file__).parent.parent.parent / "SECURITY.md").read_text()
    assert not [name for name in names if f"`{name}`" not in notes]


async def test_an_engine_without_walls_is_reported_open(
    make_engine_options: MakeEngineOptions, short_dir: Path, image: Image
) -> None:
    engine = ProcessEngine(make_engine_options(short_dir))
    await engine.start()
    try:
        rows = await prove(engine, image, short_dir / "files", only=(*_CERTAIN_WITHOUT_WALLS, "pid1-kill"))
    finally:
        await engine.aclose()
    assert is_open(rows)
    assert {one.name: one.verdict for one in rows if one.verdict is not Verdict.OPEN} == {}, render_table(rows)


async def test_an_attack_that_does_not_exist_is_refused(
    make_engine_options: MakeEngineOptions, short_dir: Path, image: Image
) -> None:
    engine = ProcessEngine(make_engine_options(short_dir))
    with pytest.raises(InvalidRequest, match="no-such-attack"):
        await prove(engine, image, short_dir / "files", only=("no-such-attack",))


async def test_a_program_inside_has_three_descriptors_and_the_variables_it_was_given(
    make_engine_options: MakeEngineOptions, short_dir: Path
) -> None:
    engine = NamespaceEngine(make_engine_options(short_dir))
    files = short_dir / "files" / "m"
    try:
        await engine.start()
        files.mkdir()
        sandbox = await engine.create(SandboxSpec(id=new_sandbox_id(), tier=STANDARD, files=files))
        listing = "ls /proc/self/fd; env -u GIVEN | sort | cut -d= -f1"
        process = await sandbox.start(
            ProcessSpec(id=new_process_id(), argv=("/bin/sh", "-c", listing), env={"GIVEN": "1"})
        )
        said = b"".join([chunk.data async for chunk in process.output()]).decode().split()
    finally:
        await engine.aclose()
    # The fourth is the one that `ls` itself opened to list them.
    assert said[:4] == ["0", "1", "2", "3"]
    # By the second, what asks for packages finds the image's Python.
    strange = [name for name in said[4:] if name.isdigit() or "WORKBENCH" in name or "PYTEST" in name]
    assert strange == ["WORKBENCH_PYTHON"]


def _judged(result: Result, *, name: str = "x", judge: Judge = Judge.REFUSED, control: str | None = "plain: yes",
            grade: Grade = Grade.ENFORCED) -> Verdict:  # fmt: skip
    attack = Attack(name=name, description="", run=lambda _: "", judge=judge)
    where = Surroundings(
        canaries={"": ("canary",)}, seen=frozenset(), bounds={name: 10.0}, grades={Barrier.MEMORY: grade}
    )
    return row(attack, result, where, control, "no control").verdict


@pytest.mark.parametrize(
    ("result", "judge", "verdict"),
    [
        (Result(end="refused"), Judge.REFUSED, Verdict.BLOCKED),
        (Result(end="got"), Judge.REFUSED, Verdict.OPEN),
        (Result(end="got", detail="a canary"), Judge.CANARY, Verdict.OPEN),
        (Result(end="got", detail="something else"), Judge.CANARY, Verdict.CONTAINED),
        (Result(end="got"), Judge.SEEN, Verdict.CONTAINED),
        (Result(end="got", amount=10.0), Judge.BOUNDED, Verdict.CONTAINED),
        (Result(end="got", amount=10.1), Judge.BOUNDED, Verdict.OPEN),
        (Result(end="broken"), Judge.REFUSED, Verdict.OPEN),
        (Result(end="hung"), Judge.CANARY, Verdict.OPEN),
        (Result(end="lost"), Judge.REFUSED, Verdict.OPEN),
    ],
)
def test_a_verdict_follows_from_what_was_seen(result: Result, judge: Judge, verdict: Verdict) -> None:
    assert _judged(result, judge=judge) is verdict


def test_an_attack_without_a_control_proves_nothing_unless_it_got_through() -> None:
    assert _judged(Result(end="refused"), control=None) is Verdict.NOT_COUNTED
    assert _judged(Result(end="got"), control=None) is Verdict.OPEN


def test_a_limit_that_is_only_watched_is_accepted_and_one_that_is_enforced_is_not() -> None:
    over = Result(end="got", amount=11.0)
    assert _judged(over, name="memory-bomb", judge=Judge.BOUNDED, grade=Grade.WATCHED) is Verdict.ACCEPTED
    assert _judged(over, name="memory-bomb", judge=Judge.BOUNDED, grade=Grade.ENFORCED) is Verdict.OPEN
