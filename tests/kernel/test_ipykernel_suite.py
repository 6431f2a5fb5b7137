"""ipykernel's own test suite against our kernel: what fails is listed with its reason, and nothing else fails."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.kernel.failures import complaints

ROOT = Path(__file__).resolve().parents[2]
_CASE = '<testcase classname="tests.test_x" name="{name}">{inside}</testcase>'


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_ipykernels_own_suite_fails_only_where_the_list_says_so() -> None:
    run = subprocess.run(
        [ROOT / "scripts/ipykernel-tests", sys.executable], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stdout[-8000:] + run.stderr[-2000:]


def test_the_comparison_sees_every_difference(tmp_path: Path) -> None:
    document, results = tmp_path / "list.md", tmp_path / "results.xml"
    document.write_text("| test | why |\n|---|---|\n| `test_x.py::a` | |\n| `test_x.py::b` | |\n| `test_x.py::c` | |\n")
    cases = {"a": "<failure/>", "b": "", "d": "<error/>", "e": "", "f": "<skipped/>"}
    inside = "".join(_CASE.format(name=name, inside=what) for name, what in cases.items())
    results.write_text(f"<testsuites><testsuite>{inside}</testsuite></testsuites>")
    assert complaints(document, results) == [
        "fails, and is not listed: test_x.py::d",
        "is listed, and passes: test_x.py::b",
        "is listed, and was not run: test_x.py::c",
    ]
    results.write_text("<testsuites/>")
    assert complaints(document, results) == ["no test was run: results.xml"]
