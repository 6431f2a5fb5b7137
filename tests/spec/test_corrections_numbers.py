"""The rows of bench/corrections.py that may never be otherwise, on a smaller sample."""

from __future__ import annotations

from bench.damage import LOST, MENDABLE, cells, damaged, own_folders, untouched


def test_no_correction_of_a_damaged_copy_is_wrong() -> None:
    some = cells(own_folders(), 60)
    found = damaged(some, MENDABLE)
    assert {kind: one.wrong for kind, one in found.items() if one.wrong} == {}
    assert sum(one.right for one in found.values()) > 400
    assert all(one.copies == one.declined for one in damaged(some, LOST).values())


def test_no_valid_file_is_touched() -> None:
    found = untouched(own_folders(), 80)
    assert found.files > 40
    assert found.touched == []
