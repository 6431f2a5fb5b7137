"""How a session's snapshots and family are told, in words and in JSON."""

from __future__ import annotations

from dataclasses import replace

import pytest

from workbench.cli.sessions import snapshots_in_words
from workbench.cli.values import session_json
from workbench.model.execution import SnapshotState
from workbench.model.ids import MountId, SandboxId, SessionId
from workbench.model.session import Session, SessionDescription, SessionSpec

ONE = SessionId("one")


def described(state: str, snapshots: SnapshotState, *, on: bool = True) -> SessionDescription:
    session = Session(
        spec=SessionSpec(id=ONE, snapshots=on),
        created_at="t1",
        used_at="t2",
        mount=MountId("root"),
        principal=SessionId("root"),
        parent=SessionId("root"),
        sandbox=SandboxId("sb-1"),
        begun=True,
    )
    return SessionDescription(session=session, state=state, snapshots=snapshots, shared_with=(SessionId("root"),))


@pytest.mark.parametrize(
    ("state", "snapshots", "words"),
    [
        ("cold", SnapshotState(), "on"),
        ("idle", SnapshotState(), "none"),
        ("idle", SnapshotState(reason="it has\nthreads"), "none: it has?threads"),
        ("busy", SnapshotState(kept=3, reason="a cell runs"), "3 kept, not current: a cell runs"),
        ("idle", SnapshotState(kept=3, current=True, cost_s=0.0123), "3 kept, the newest is current and took 0.012 s"),
    ],
)
def test_what_is_kept_is_told_with_its_cost_or_why_not(state: str, snapshots: SnapshotState, words: str) -> None:
    assert snapshots_in_words(described(state, snapshots)) == words


def test_snapshots_that_are_switched_off_are_told_as_off() -> None:
    assert snapshots_in_words(described("idle", SnapshotState(reason="off"), on=False)) == "off"


def test_scripts_read_of_family_and_snapshots() -> None:
    told = session_json(described("idle", SnapshotState(kept=1, current=True, cost_s=0.5)))
    assert (told["parent"], told["principal"], told["mount"], told["shared_with"]) == ("root", "root", "root", ["root"])
    assert told["snapshots"] == {"on": True, "kept": 1, "current": True, "cost_s": 0.5, "reason": ""}
    alone = described("idle", SnapshotState())
    assert session_json(replace(alone, session=replace(alone.session, parent=None)))["parent"] is None
