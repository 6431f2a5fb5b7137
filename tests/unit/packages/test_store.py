"""The store: whole entries, readable by everybody, within its size."""

from __future__ import annotations

import os
from pathlib import Path

from workbench.packages.store import Store


def _kept(store: Store, key: str, size: int) -> None:
    place = store.begin()
    (place / "data").write_bytes(b"x" * size)
    os.chmod(place / "data", 0o600)
    store.keep(key, place)


def test_an_entry_is_there_once_it_is_whole_and_readable_by_everybody(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    place = store.begin()
    assert store.find("a") is None
    (place / "data").write_bytes(b"123")
    os.chmod(place / "data", 0o600)
    entry = store.keep("a", place)
    assert (entry.size, (entry.files / "data").stat().st_mode & 0o777) == (3, 0o644)
    assert store.find("a") == entry


def test_what_was_begun_and_dropped_leaves_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    place = store.begin()
    store.drop(place)
    store.drop(place)
    assert os.listdir(tmp_path / "store") == []


def test_one_that_somebody_else_made_meanwhile_counts(tmp_path: Path) -> None:
    store = Store(tmp_path / "store")
    first, second = store.begin(), store.begin()
    (first / "who").write_text("first")
    (second / "who").write_text("second")
    store.keep("a", first)
    assert (store.keep("a", second).files / "who").read_text() == "first"
    assert os.listdir(tmp_path / "store") == ["a"]


def test_the_least_used_go_when_there_is_no_room(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", most_bytes=35)
    for number, key in enumerate(("a", "b")):
        _kept(store, key, 10)
        os.utime(tmp_path / "store" / key, (number, number))
    assert store.find("a") is not None  # used again: `b` is older now
    _kept(store, "c", 10)
    _kept(store, "d", 10)
    assert sorted(os.listdir(tmp_path / "store")) == ["a", "c", "d"]
