"""What lies here beside what is known to be there."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterable
from pathlib import Path

from workbench.storage.objects.manifest import Kept, Mark
from workbench.storage.objects.walking import CLOCK_STEP_S, Found, Walk, What, changes

ONE, OTHER = Mark(1, 1, 1, 0o644), Mark(2, 1, 1, 0o644)
ENOUGH = 100


def told(found: Iterable[Found], kept: Iterable[Kept]) -> list[tuple[What, bytes]]:
    return [(one.what, one.path) for one in changes(found, kept, most_holes=ENOUGH)]


def walked(folder: Path) -> list[bytes]:
    top = os.open(folder, os.O_RDONLY)
    try:
        return [found.path for found in Walk(top)]
    finally:
        os.close(top)


def test_files_come_in_the_order_of_their_paths_and_nothing_else_comes(tmp_path: Path) -> None:
    for name in ("a/b", "a-b", "a.c/d", "b", "a/z/y", "a0"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "empty").mkdir()
    (tmp_path / "link").symlink_to("a")
    os.mkfifo(tmp_path / "fifo")
    found = walked(tmp_path)
    assert found == sorted(found)
    assert set(found) == {b"a/b", b"a-b", b"a.c/d", b"b", b"a/z/y", b"a0"}


def test_the_difference_is_what_is_new_changed_or_gone() -> None:
    here = [Found(b"a", ONE), Found(b"c", OTHER), Found(b"d", ONE), Found(b"f", ONE)]
    there = [Kept(b"a", ONE), Kept(b"b", ONE), Kept(b"c", ONE), Kept(b"d", None), Kept(b"g", None)]
    assert told(here, there) == [
        (What.DROP, b"b"),
        (What.SEND, b"c"),
        (What.SEND, b"d"),
        (What.SEND, b"f"),
        (What.DROP, b"g"),
    ]


def test_what_is_in_a_folder_that_cannot_be_read_is_left_alone() -> None:
    here = [Found(b"a", ONE), Found(b"closed/", None), Found(b"d", ONE)]
    there = [Kept(b"a", ONE), Kept(b"closed/x", ONE), Kept(b"closed/y/z", ONE), Kept(b"closed0", ONE), Kept(b"d", ONE)]
    assert told(here, there) == [(What.UNREAD, b"closed/"), (What.DROP, b"closed0")]


def test_a_top_that_cannot_be_read_drops_nothing() -> None:
    assert told([Found(b"", None)], [Kept(b"a", ONE), Kept(b"b/c", ONE)]) == [(What.UNREAD, b"")]


def test_any_two_states_are_told_apart() -> None:
    chance = random.Random(3)
    names = [f"{one}{sep}{other}".encode() for one in "abc" for sep in "-/0" for other in "xyz"]
    for _ in range(300):
        here = {name: chance.choice((ONE, OTHER)) for name in names if chance.random() < 0.5}
        there = {name: chance.choice((ONE, OTHER, None)) for name in names if chance.random() < 0.5}
        seen = told(
            (Found(name, here[name]) for name in sorted(here)), (Kept(name, there[name]) for name in sorted(there))
        )
        assert {path for what, path in seen if what is What.DROP} == there.keys() - here.keys()
        assert {path for what, path in seen if what is What.SEND} == {
            name for name in here if there.get(name) != here[name]
        }


def test_an_object_that_was_never_a_file_here_is_left_alone() -> None:
    there = [Kept(b"a", None, ours=False), Kept(b"b", ONE), Kept(b"c", None, ours=False)]
    assert told([Found(b"c", ONE)], there) == [(What.DROP, b"b"), (What.SEND, b"c")]


def test_holes_are_sent_up_to_a_bound_of_all_files_together() -> None:
    here = [Found(b"a", ONE, 60), Found(b"b", ONE, 60), Found(b"c", ONE, 40), Found(b"d", ONE, 1), Found(b"e", ONE, 0)]
    assert told(here, [Kept(b"a", ONE), Kept(b"d", OTHER)]) == [
        (What.BEYOND, b"b"),
        (What.SEND, b"c"),
        (What.BEYOND, b"d"),
        (What.SEND, b"e"),
    ]


def test_two_walks_tell_whether_anything_was_moved_between_them(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep/file").touch()
    top = os.open(tmp_path, os.O_RDONLY)

    def state() -> bytes:
        time.sleep(CLOCK_STEP_S)
        walk = Walk(top)
        assert list(walk)
        assert not walk.is_disturbed
        return walk.state

    try:
        before = state()
        (tmp_path / "deep/file").write_bytes(b"its content is no matter of its folder")
        assert state() == before
        (tmp_path / "deep/file").rename(tmp_path / "deep/other")
        young = Walk(top)
        assert list(young)
        assert young.is_disturbed
        assert state() != before
        walk = Walk(top)
        files = iter(walk)
        (tmp_path / "first").touch()
        time.sleep(CLOCK_STEP_S)
        os.utime(tmp_path)
        time.sleep(CLOCK_STEP_S)
        next(files)
        (tmp_path / "first").unlink()
        list(files)
        assert walk.is_disturbed
    finally:
        os.close(top)
