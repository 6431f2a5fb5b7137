"""Compare the results of a foreign test suite with the list of what may fail in it."""

from __future__ import annotations

import re
import sys
import xml.etree.ElementTree as Tree
from pathlib import Path


def failed(results: Path) -> tuple[set[str], set[str]]:
    """Which tests failed, and which were run at all, as `file::name`."""
    bad, run = set(), set()
    for case in Tree.parse(results).iter("testcase"):
        name = f"{case.get('classname', '').rpartition('.')[2]}.py::{case.get('name')}"
        if case.find("skipped") is None:
            run.add(name)
        if case.find("failure") is not None or case.find("error") is not None:
            bad.add(name)
    return bad, run


def listed(document: Path) -> set[str]:
    """The tests of its table."""
    return set(re.findall(r"^\| `([^`]+)` \|", document.read_text(encoding="utf-8"), re.MULTILINE))


def complaints(document: Path, *results: Path) -> list[str]:
    """One line for each difference, and for a suite that did not run."""
    allowed, bad, run = listed(document), set[str](), set[str]()
    for one in results:
        bad_here, run_here = failed(one)
        if not run_here:
            return [f"no test was run: {one.name}"]
        bad |= bad_here
        run |= run_here
    return [
        *(f"fails, and is not listed: {name}" for name in sorted(bad - allowed)),
        *(f"is listed, and passes: {name}" for name in sorted((allowed & run) - bad)),
        *(f"is listed, and was not run: {name}" for name in sorted(allowed - run)),
    ]


def main() -> None:
    """LIST.md RESULTS.xml...; exits with 1 if they differ."""
    found = complaints(*map(Path, sys.argv[1:]))
    print("\n".join(found) or "as listed")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
