"""Files of sessions from outside, on a real disk: names, quotas, links, and sessions that are deleted meanwhile."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.core.standins import FakeClock, FakeHost, NoFetching, WorldRecords, no_installs

from workbench.core import mount_requests as m
from workbench.core import requests
from workbench.core.links import LinkSigner
from workbench.core.workbench import Workbench
from workbench.data_folder import DataFolder
from workbench.errors import Conflict, Denied, InvalidRequest, NotFound, QuotaExceeded
from workbench.model.ids import DEFAULT_PROJECT, ProjectId, SessionId
from workbench.model.mounts import LinkAction
from workbench.model.tier import STANDARD
from workbench.storage.disk import DiskMountStore

ONE = SessionId("one")
MIB = 2**20


class World:
    def __init__(self, data: DataFolder) -> None:
        self.data = data
        self.clock = FakeClock()
        self.records = WorldRecords()
        self.store = DiskMountStore(data)

    def bench(self, project: ProjectId = DEFAULT_PROJECT) -> Workbench:
        return Workbench(
            host=FakeHost(),
            records=self.records,
            mounts=self.store,
            fetching=NoFetching(),
            signer=LinkSigner(lambda: b"a secret"),
            clock=self.clock,
            installs=no_installs(self.clock),
            project=project,
        )

    @property
    def folder(self) -> Path:
        return self.data.files / ONE


@pytest.fixture
def world(tmp_path: Path) -> World:
    data = DataFolder(tmp_path / "data")
    data.make()
    return World(data)


@pytest.fixture
async def bench(world: World) -> Workbench:
    bench = world.bench()
    await bench.create_session(requests.CreateSession(session=ONE))
    return bench


async def put(bench: Workbench, path: str, data: bytes = b"x", size: int | None = None) -> str:
    async with bench.mounts.stage(m.StageFile(session=ONE, path=path, size=size)) as staged:
        await staged.write(data)
        return (await staged.commit()).path


async def read(bench: Workbench, path: str) -> bytes:
    async with bench.mounts.open(m.OpenMountFile(session=ONE, path=path)) as opened:
        return os.pread(opened.descriptor, 1000, 0)


async def link(bench: Workbench, action: LinkAction = LinkAction.UPLOAD, lifetime_s: int = 60) -> m.SignedLink:
    return await bench.mounts.link(m.MakeLink(session=ONE, path="/in.csv", action=action, lifetime_s=lifetime_s))


@pytest.mark.parametrize(
    ("asked", "path"),
    [
        ("/etc/passwd", "etc/passwd"),
        ("/mnt/files/x", "x"),
        ("🎉", "🎉"),
        ("שלום.txt", "שלום.txt"),
        ("x" * 255, "x" * 255),
        ("...", "..."),
    ],
)
async def test_a_good_name_is_a_file_in_the_mount(bench: Workbench, world: World, asked: str, path: str) -> None:
    before = Path("/etc/passwd").read_bytes()
    assert await put(bench, asked, b"mine") == path
    assert await read(bench, asked) == b"mine"
    assert (world.folder / path).read_bytes() == b"mine"
    assert (await bench.mounts.delete(m.DeleteFile(session=ONE, path=asked))).path == path
    assert Path("/etc/passwd").read_bytes() == before


@pytest.mark.parametrize(
    "path", ["../x", "a/./b", "a//b", "", "/", "a\0b", "x" * 4096, "x" * 256, "a/../../../etc/passwd", "\ud800"]
)
async def test_a_bad_name_is_refused_by_every_call(bench: Workbench, world: World, path: str) -> None:
    for call in (
        put(bench, path),
        read(bench, path),
        bench.mounts.describe_file(m.OpenMountFile(session=ONE, path=path)),
        bench.mounts.delete(m.DeleteFile(session=ONE, path=path)),
        bench.mounts.link(m.MakeLink(session=ONE, path=path, action=LinkAction.UPLOAD)),
    ):
        with pytest.raises(InvalidRequest, match="not a path in the mount"):
            await call
    assert not world.folder.exists()


async def test_a_folders_name_is_no_files_name(bench: Workbench) -> None:
    await put(bench, "data/in.csv")
    for call in (put(bench, "data"), read(bench, "data"), link_to(bench, "data")):
        with pytest.raises(Conflict, match="folder"):
            await call
    for call in (put(bench, "data/"), read(bench, "data/")):
        with pytest.raises(InvalidRequest, match="ends with a slash"):
            await call
    with pytest.raises(Conflict, match="not a folder"):
        await put(bench, "data/in.csv/below")
    assert await bench.mounts.delete(m.DeleteFile(session=ONE, path="/data/")) == m.DeletedFiles(path="data", files=1)  # type: ignore[arg-type]


async def link_to(bench: Workbench, path: str) -> None:
    await bench.mounts.link(m.MakeLink(session=ONE, path=path, action=LinkAction.DOWNLOAD))


async def test_every_call_names_the_one_mount_there_is(bench: Workbench) -> None:
    for call in (
        bench.mounts.list(m.ListFiles(session=ONE, mount="others")),
        bench.mounts.describe(m.DescribeMount(session=ONE, mount="others")),
        bench.mounts.delete(m.DeleteFile(session=ONE, path="x", mount="others")),
        bench.mounts.staged(m.StageFile(session=ONE, path="x", mount="others", name="x")),
        bench.mounts.link(m.MakeLink(session=ONE, path="x", action=LinkAction.UPLOAD, mount="others")),
    ):
        with pytest.raises(NotFound, match="a session has one, 'files'"):
            await call


@pytest.mark.parametrize("limit", [0, -1, 501])
async def test_a_page_has_so_many_files(bench: Workbench, limit: int) -> None:
    with pytest.raises(InvalidRequest, match="1 to 500"):
        await bench.mounts.list(m.ListFiles(session=ONE, limit=limit))


async def test_an_unknown_session_has_no_files(bench: Workbench) -> None:
    nobody = SessionId("nobody")
    for call in (
        bench.mounts.list(m.ListFiles(session=nobody)),
        bench.mounts.delete(m.DeleteFile(session=nobody, path="x")),
    ):
        with pytest.raises(NotFound, match="nobody"):
            await call


async def test_one_that_is_not_committed_leaves_nothing_unless_it_has_a_name(bench: Workbench, world: World) -> None:
    with contextlib.suppress(ConnectionError):
        async with bench.mounts.stage(m.StageFile(session=ONE, path="x")) as staged:
            await staged.write(b"half")
            raise ConnectionError
    assert os.listdir(world.data.uploads / ONE) == []
    named = m.StageFile(session=ONE, path="x", name="named")
    async with bench.mounts.stage(named) as staged:
        await staged.write(b"half")
    assert await bench.mounts.staged(named) == 4
    assert (await bench.mounts.list(m.ListFiles(session=ONE))).files == ()


async def test_the_quota_is_the_tiers_and_told_with_both_numbers(world: World) -> None:
    bench = world.bench()
    tier = replace(STANDARD, files_bytes=3 * MIB, files_inodes=3)
    await bench.create_session(requests.CreateSession(session=ONE, tier=tier))
    await put(bench, "one", b"x" * 2 * MIB)
    with pytest.raises(QuotaExceeded, match="may hold 3,145,728") as refused:
        await put(bench, "two", b"x" * 2 * MIB)
    assert int(refused.value.context["held_bytes"]) >= 2 * MIB
    with pytest.raises(QuotaExceeded, match="may hold 3,145,728"):
        await put(bench, "two", b"", size=2 * MIB)
    with pytest.raises(QuotaExceeded, match="holds 1 files and folders, and may hold 3"):
        await put(bench, "a/b/c")
    described = await bench.mounts.describe(m.DescribeMount(session=ONE))
    assert (described.quota.bytes, described.quota.files, described.use.files) == (3 * MIB, 3, 1)
    assert described.use.bytes >= 2 * MIB


async def test_a_file_for_a_session_that_was_deleted_meanwhile_is_refused(bench: Workbench, world: World) -> None:
    async with bench.mounts.stage(m.StageFile(session=ONE, path="a/x")) as staged:
        await staged.write(b"late")
        await bench.delete_session(requests.DeleteSession(session=ONE))
        with pytest.raises(NotFound, match="was deleted while the file was sent"):
            await staged.commit()
    assert not world.folder.exists()
    assert not (world.data.uploads / ONE).exists()


async def test_it_does_not_come_to_the_next_session_of_that_name(bench: Workbench, world: World) -> None:
    async with bench.mounts.stage(m.StageFile(session=ONE, path="a/x")) as staged:
        await staged.write(b"late")
        await bench.delete_session(requests.DeleteSession(session=ONE))
        await bench.create_session(requests.CreateSession(session=ONE))
        await put(bench, "theirs")
        with pytest.raises(NotFound, match="was deleted while the file was sent"):
            await staged.commit()
    assert os.listdir(world.folder) == ["theirs"]


async def test_a_session_that_is_being_deleted_takes_no_file(bench: Workbench, world: World) -> None:
    """Its files may be gone already, and would be there again for ever."""
    sessions = world.records.sessions(DEFAULT_PROJECT)
    async with bench.mounts.stage(m.StageFile(session=ONE, path="a/x")) as staged:
        await staged.write(b"late")
        session = await sessions.get(ONE)
        assert await sessions.replace(session, replace(session, ending=True))
        with pytest.raises(NotFound, match="was deleted while the file was sent"):
            await staged.commit()
    assert not world.folder.exists()


async def test_a_link_is_good_until_it_expires(bench: Workbench, world: World) -> None:
    made = await link(bench, lifetime_s=60)
    assert made.link.path == "in.csv"
    await bench.mounts.check_link(made.link, made.signature)
    world.clock.seconds += 57
    await bench.mounts.check_link(made.link, made.signature)
    world.clock.seconds += 2
    with pytest.raises(Denied, match=f"expired at {made.expires_at}"):
        await bench.mounts.check_link(made.link, made.signature)


@pytest.mark.parametrize("lifetime_s", [0, -1, 604_801])
async def test_a_link_lives_a_week_at_most(bench: Workbench, lifetime_s: int) -> None:
    with pytest.raises(InvalidRequest, match="1 to 604800 seconds"):
        await link(bench, lifetime_s=lifetime_s)


async def test_a_link_for_something_else_is_not_good(bench: Workbench, world: World) -> None:
    made = await link(bench)
    await bench.create_session(requests.CreateSession(session=SessionId("two")))
    await world.bench(ProjectId("others")).create_session(requests.CreateSession(session=SessionId("three")))
    for changed in (
        {"action": LinkAction.DOWNLOAD},
        {"path": "in.csv2"},
        {"session": SessionId("two")},
        {"session": SessionId("nobody")},
        {"expires": made.link.expires + 1},
        {"mount": "others"},
        {"project": ProjectId("others")},
    ):
        with pytest.raises(Denied, match="not good"):
            await bench.mounts.check_link(replace(made.link, **changed), made.signature)
    with pytest.raises(Denied, match="not good"):
        await bench.mounts.check_link(made.link, made.signature[:-1])
    with pytest.raises(Denied, match="not good"):
        await world.bench(ProjectId("others")).mounts.check_link(made.link, made.signature)


async def test_a_link_ends_with_its_session(bench: Workbench) -> None:
    made = await link(bench)
    await bench.delete_session(requests.DeleteSession(session=ONE))
    for _ in range(2):
        with pytest.raises(Denied, match="not good"):
            await bench.mounts.check_link(made.link, made.signature)
        with contextlib.suppress(Conflict):
            await bench.create_session(requests.CreateSession(session=ONE))


async def test_a_link_to_download_is_made_only_to_a_file(bench: Workbench) -> None:
    with pytest.raises(NotFound, match="no such file"):
        await link(bench, LinkAction.DOWNLOAD)
    await put(bench, "in.csv")
    made = await link(bench, LinkAction.DOWNLOAD)
    await bench.mounts.check_link(made.link, made.signature)
