"""Quotas are kept by a count that is old, with what we did since; refusals need one that is fresh."""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from workbench.errors import QuotaExceeded
from workbench.guest_trees import TreeSize
from workbench.model.ids import MountId
from workbench.model.mounts import FilePath, Quota
from workbench.storage import measuring
from workbench.storage.measuring import Change, Measured, Room

MINE = MountId("mine")
MIB = 1024 * 1024
QUOTA = Quota(bytes=100 * MIB, files=1000)


class Mount:
    """One that takes long to count, and does not change by itself."""

    def __init__(self, folder: Path, takes_s: float = 0.0) -> None:
        self.bytes = 0
        self.entries = 0
        self.counts = 0
        self._takes_s = takes_s
        self.measured = Measured(self._count, folder)

    def _count(self, mount: MountId) -> TreeSize:
        assert mount == MINE
        self.counts += 1
        found = TreeSize(self.bytes, self.entries, complete=True)
        time.sleep(self._takes_s)
        return found

    def room(self, name: str, *, sized: bool = True, replaced: int = 0, new: int = 1) -> Room:
        return Room(
            self.measured, MINE, name, FilePath(name), QUOTA, is_sized=sized, replaced=replaced, new_entries=new
        )

    def commit(self, room: Room, size: int) -> None:
        began = time.monotonic()
        self.bytes += size
        self.entries += room.new_entries
        self.measured.changed(MINE, Change(bytes=size, entries=room.new_entries, began=began))
        self.measured.release(room)


@pytest.fixture
def costly(tmp_path: Path) -> Mount:
    return Mount(tmp_path, takes_s=0.3)


@pytest.fixture
def cheap(tmp_path: Path) -> Mount:
    return Mount(tmp_path)


def test_a_thousand_uploads_to_a_mount_that_is_costly_to_count_do_not_go_beyond_it(costly: Mount) -> None:
    refused = 0
    for number in range(1000):
        room = costly.room(f"up-{number}")
        try:
            room.need(MIB)
        except QuotaExceeded:
            costly.measured.release(room)
            refused += 1
        else:
            costly.commit(room, MIB)
    assert costly.bytes == QUOTA.bytes
    assert refused == 900
    assert costly.counts <= 5, "it was not counted for each of them"


def test_so_many_files_and_not_one_more(costly: Mount) -> None:
    for number in range(300):
        room = costly.room(f"up-{number}", new=4)
        if number < 250:
            room.need(0)
            costly.commit(room, 0)
        else:
            with pytest.raises(QuotaExceeded, match="1,000 files and folders, and may hold 1,000"):
                costly.measured.take(room, 0)
            costly.measured.release(room)
    costly.measured.take(costly.room("replaces", new=0), MIB)


def test_what_we_deleted_makes_room_at_once(costly: Mount) -> None:
    room = costly.room("first")
    room.need(90 * MIB)
    costly.commit(room, 90 * MIB)
    began = time.monotonic()
    costly.bytes -= 50 * MIB
    costly.measured.changed(MINE, Change(bytes=-50 * MIB, entries=-1, began=began))
    counts = costly.counts
    costly.room("second").need(55 * MIB)
    assert costly.counts == counts


def test_what_code_deleted_is_found_before_anyone_is_refused(tmp_path: Path) -> None:
    mount = Mount(tmp_path, takes_s=0.1)
    room = mount.room("first")
    room.need(90 * MIB)
    mount.commit(room, 90 * MIB)
    mount.bytes = 0
    mount.room("second").need(90 * MIB)
    assert mount.counts == 2


def test_who_is_refused_again_and_again_does_not_make_us_count_all_the_time(costly: Mount) -> None:
    for number in range(50):
        with pytest.raises(QuotaExceeded):
            costly.room(f"up-{number}").need(101 * MIB)
    assert costly.counts <= 3


def test_a_deletion_that_a_count_may_have_seen_is_not_taken_off_twice(costly: Mount) -> None:
    costly.bytes = 90 * MIB
    began = time.monotonic()
    costly.bytes -= 80 * MIB
    costly.room("first").need(MIB)
    costly.measured.changed(MINE, Change(bytes=-80 * MIB, entries=0, began=began))
    with pytest.raises(QuotaExceeded):
        costly.room("second").need(95 * MIB)


def test_of_two_that_grow_together_one_goes_on(cheap: Mount) -> None:
    one, other = cheap.room("one", sized=False), cheap.room("other", sized=False)
    lost, words = None, []
    for size in range(MIB, 80 * MIB, MIB):
        for room in (one, other):
            if room is lost:
                continue
            try:
                room.need(size)
            except QuotaExceeded as refused:
                words.append(refused.message)
                lost = room
    assert lost is not None
    assert len(words) == 1, "only one of them"
    assert "of other uploads on their way" in words[0]
    cheap.measured.release(lost)


def test_what_other_processes_have_staged_counts_and_so_does_what_was_left(cheap: Mount, tmp_path: Path) -> None:
    (tmp_path / MINE).mkdir()
    (tmp_path / MINE / "left").write_bytes(b"x" * 60 * MIB)
    (tmp_path / MINE / "left.remark").write_bytes(b"x" * 60 * MIB)
    with pytest.raises(QuotaExceeded) as refused:
        cheap.room("mine").need(50 * MIB)
    assert 60 * MIB <= int(refused.value.context["coming_bytes"]) < 61 * MIB
    cheap.room("mine").need(30 * MIB)
    cheap.room("left").need(99 * MIB - 30 * MIB)


def test_many_threads_take_no_more_than_there_is(cheap: Mount) -> None:
    taken = []

    def take(number: int) -> None:
        room = cheap.room(f"up-{number}")
        try:
            room.need(7 * MIB)
        except QuotaExceeded:
            return
        taken.append(room)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(take, range(40)))
    assert len(taken) == 14


def test_no_thread_counts_what_another_is_counting(costly: Mount) -> None:
    threads = [threading.Thread(target=costly.room(f"up-{number}").need, args=(1,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert costly.counts == 1


def test_mounts_that_nobody_uses_are_forgotten(cheap: Mount, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "_MOST_KEPT", 10)
    room = cheap.room("mine")
    room.need(MIB)
    for number in range(50):
        cheap.measured.forget(MountId(f"other-{number}"))
    assert len(cheap.measured._mounts) <= 12
    assert cheap.measured._mounts[MINE].claims == {"mine": room}
