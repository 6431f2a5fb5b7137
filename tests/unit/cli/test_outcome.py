"""Exit codes and remarks: what a script and a reader are told about an end."""

from __future__ import annotations

import pytest

from workbench.cli.outcome import exit_code, remarks
from workbench.model.process import Limit
from workbench.wire.host import ProcessReport


def ended(code: int | None = None, signal: int | None = None, *, lost: bool = False, reason: str = "",
          limits: tuple[Limit, ...] = ()) -> ProcessReport:  # fmt: skip
    return ProcessReport(process="p", running=False, code=code, signal=signal, lost=lost, reason=reason, limits=limits)


@pytest.mark.parametrize(
    ("report", "timed_out", "expected"),
    [
        (ended(0), False, 0),
        (ended(7), False, 7),
        (ended(signal=9), False, 137),
        (ended(lost=True), False, 126),
        (ended(signal=9), True, 124),
        (ended(0), True, 124),
    ],
)
def test_every_end_has_its_code(report: ProcessReport, timed_out: bool, expected: int) -> None:
    assert exit_code(report, timed_out=timed_out) == expected


def test_a_plain_end_needs_no_remark() -> None:
    assert remarks(ended(1), timed_out=False, limit_s=5) == []


def test_what_was_met_is_named_with_the_next_step() -> None:
    said = remarks(ended(signal=9, limits=(Limit.MEMORY,)), timed_out=False, limit_s=5)
    assert said == ["the code was ended by signal 9", "limit met: out of memory; --tier chooses a larger size"]
    assert "time limit of 5 s" in remarks(ended(signal=2), timed_out=True, limit_s=5)[0]
    assert "under the code: gone" in remarks(ended(lost=True, reason="gone"), timed_out=False, limit_s=5)[0]
