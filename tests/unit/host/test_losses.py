"""Losses are told truthfully, whatever happened to the file."""

from __future__ import annotations

from pathlib import Path

from workbench.host.losses import Loss, add_losses, read_losses


def loss(number: int) -> Loss:
    return Loss(sandbox=f"sb-{number}", host="h-1", when="now")


def test_losses_are_read_back_oldest_first_and_bounded(tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    assert read_losses(path) == []
    add_losses(path, [loss(n) for n in range(990)])
    add_losses(path, [loss(n) for n in range(990, 1010)])
    kept = read_losses(path)
    assert (len(kept), kept[0], kept[-1]) == (1000, loss(10), loss(1009))
    assert read_losses(path, 2) == [loss(1008), loss(1009)]


def test_a_torn_or_foreign_line_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "losses.jsonl"
    add_losses(path, [loss(1)])
    with path.open("ab") as file:
        file.write(b'{"sandbox": "sb-2", "ho\n[]\n\xff\n')
    assert read_losses(path) == [loss(1)]
