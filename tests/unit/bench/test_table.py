"""A bench's verdicts are what CI acts on."""

from __future__ import annotations

from pathlib import Path

from bench.table import Row, exit_code, keep, render


def row(*, passed: bool, fatal: bool) -> Row:
    return Row(what="w", seen="s", must="m", aim="a", passed=passed, aimed=False, fatal=fatal)


def test_a_full_run_fails_on_any_fail_and_a_quick_one_only_on_fatal_rows() -> None:
    slow, wrong, good = row(passed=False, fatal=False), row(passed=False, fatal=True), row(passed=True, fatal=True)
    assert exit_code([good], quick=False) == 0
    assert exit_code([good, slow], quick=False) == 1
    assert exit_code([good, slow], quick=True) == 0
    assert exit_code([good, wrong], quick=True) == 1
    assert "| FAIL |" in render("T", [slow])


def test_results_of_other_benches_stay_when_one_is_written_again(tmp_path: Path) -> None:
    path = tmp_path / "RESULTS.md"
    keep(path, "one", "first")
    keep(path, "two", "second")
    keep(path, "one", "newer")
    text = path.read_text()
    assert "first" not in text
    assert text.index("newer") < text.index("second")
