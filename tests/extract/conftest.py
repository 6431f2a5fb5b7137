"""Reading files as callers do: the program, run by the interpreter of the image."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from workbench.model.image import Image
from workbench_guest.extract import Extracted

SOURCE = Path(__file__).resolve().parents[2] / "src"
_READ_S = 110.0
Read = Callable[..., Extracted]


@pytest.fixture(scope="session")
def read(image: Image) -> Read:
    """What `python -m workbench_guest.extract PATH` says; it says one JSON object and nothing else."""

    def run(path: Path | str, cwd: Path | None = None) -> Extracted:
        done = subprocess.run(
            [image.python, "-m", "workbench_guest.extract", os.fspath(path)],
            env={**os.environ, "PYTHONPATH": str(SOURCE)}, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_READ_S, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr.decode()
        return Extracted(**json.loads(done.stdout))

    return run


@pytest.fixture(scope="session")
def read_within(image: Image) -> Read:
    """The same by the function, with limits of time of one's own."""
    code = (
        "import json, sys, dataclasses\nfrom workbench_guest.extract import extract\n"
        "told = extract(sys.argv[1], page_s=int(sys.argv[2]), total_s=float(sys.argv[3]))\n"
        "json.dump(dataclasses.asdict(told), sys.stdout)"
    )

    def run(path: Path, page_s: int, total_s: float) -> Extracted:
        done = subprocess.run(
            [image.python, "-c", code, str(path), str(page_s), str(total_s)],
            env={**os.environ, "PYTHONPATH": str(SOURCE)}, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=_READ_S, check=True,
        )  # fmt: skip
        return Extracted(**json.loads(done.stdout))

    return run
