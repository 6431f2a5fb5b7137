"""What a host wrote down is what the next one reads, torn lines or not."""

from __future__ import annotations

import os
from pathlib import Path

from workbench.engines.proc import start_time
from workbench.host.journal import Journal, unfinished
from workbench.model.ids import SandboxId


def test_what_was_made_and_not_ended_is_unfinished(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.made(SandboxId("a"), os.getpid())
    journal.made(SandboxId("b"), None)
    journal.ended(SandboxId("a"), "closed")
    journal.close()
    left = unfinished(path)
    assert [(made.sandbox, made.pid, made.started) for made in left] == [("b", None, None)]


def test_a_torn_last_line_loses_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    journal = Journal(path)
    journal.made(SandboxId("a"), os.getpid())
    journal.close()
    with path.open("a") as file:
        file.write('{"event": "made", "sand')
    (made,) = unfinished(path)
    assert (made.sandbox, made.pid) == ("a", os.getpid())
    assert made.started == start_time(os.getpid())


def test_no_journal_means_nothing_was_made(tmp_path: Path) -> None:
    assert unfinished(tmp_path / "none") == []
