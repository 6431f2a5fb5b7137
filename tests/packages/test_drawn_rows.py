"""Rows of the table, drawn by the commit's hash, are installed and imported in a sandbox; one wrong row fails."""

from __future__ import annotations

import hashlib
import random
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.restart.server import Server

from workbench.packages.python_tables import tables

ROOT = Path(__file__).resolve().parents[2]
DRAWN = 20
# Beside each other: most of the time is spent waiting for the index.
AT_ONCE = 3


def _seed() -> str:
    """Of the commit; a copy without its history has the table's own."""
    told = subprocess.run(["git", "rev-parse", "HEAD"], cwd=ROOT, capture_output=True, text=True, check=False)
    if told.returncode == 0:
        return told.stdout.strip()
    lists = sorted((ROOT / "src/workbench/packages/lists/python").glob("*.txt"))
    return hashlib.sha256(b"".join(one.read_bytes() for one in lists)).hexdigest()


def _wrong(server: Server, name: str, modules: tuple[str, ...]) -> str:
    with server.bench() as bench:
        session = bench.create("tester", sandbox={"snapshots": False, "sandbox_size": "medium"})
        try:
            result = session.run("\n".join(f"import {module}" for module in modules), limit_s=280)
            packages = [pin.partition("==")[0] for one in result.corrections for pin in one.packages]
            if result.ok and (name in packages or not packages):
                return ""
            return f"{name}: {result.error or packages} {[one.text for one in result.corrections]}"
        finally:
            session.delete()


@pytest.mark.long
@pytest.mark.timeout(900)
def test_rows_that_the_commit_drew_are_right(public: Server) -> None:
    rows = sorted((name, modules) for name, modules in tables().distributions.items() if modules)
    drawn = random.Random(_seed()).sample(rows, DRAWN)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        wrong = [told for told in pool.map(lambda row: _wrong(public, *row), drawn) if told]
    assert not wrong, "\n".join(wrong)
