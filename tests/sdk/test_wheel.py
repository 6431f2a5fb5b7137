"""The built wheel, installed where no clone is: what the README and the reference begin with runs from it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
_LONG_S = 300.0
_LIBRARIES = sysconfig.get_path("purelib")
_CHECKS = """
import sys, workbench, workbench_guest
for package in (workbench, workbench_guest):
    assert package.__file__.startswith(sys.prefix), package.__file__
assert not [path for path in sys.path if path.endswith("/src")], sys.path
"""
# What a reader exports who follows the README.
_AS_TOLD = """
import os
os.environ |= {"OPEN_WORKBENCH_URL": wb.url, "OPEN_WORKBENCH_API_KEY": wb._server.key}
"""


def run(*command: str | Path, folder: Path) -> str:
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV"))}
    done = subprocess.run(command, cwd=folder, env=environ, capture_output=True, text=True, timeout=_LONG_S)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def blocks(name: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


@pytest.fixture
def installed(short_dir: Path) -> Path:
    """A Python that sees our dependencies, and of ours only the wheel."""
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", short_dir / "dist", folder=ROOT)
    (wheel,) = (short_dir / "dist").glob("*.whl")
    run(sys.executable, "-m", "venv", "--without-pip", short_dir / "venv", folder=short_dir)
    python = short_dir / "venv" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", python, "install", "--no-deps", "--no-index", wheel, folder=short_dir)
    libraries = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", folder=short_dir).strip()
    # A folder that is named in such a file has its own such files not read: the clone stays unseen.
    (Path(libraries) / "dependencies.pth").write_text(f"{_LIBRARIES}\n", encoding="utf-8")
    return python


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_wheel_without_a_clone_runs_what_the_docs_begin_with(installed: Path, short_dir: Path) -> None:
    begins = blocks("docs/reference/sdk.md")[0]
    program = short_dir / "program.py"
    program.write_text("\n".join([_CHECKS, begins, _AS_TOLD, *blocks("README.md")]), encoding="utf-8")
    assert run(installed, program, folder=short_dir).startswith("2.0\n")
    assert run(installed.parent / "workbench", "--version", folder=short_dir).startswith("workbench")


@pytest.mark.long
@pytest.mark.timeout(900)
def test_a_checker_sees_the_types_of_the_wheel(installed: Path, short_dir: Path) -> None:
    program = short_dir / "typed.py"
    program.write_text(
        "from workbench import Outcome, Session, Workbench\n\n\n"
        "def shown(wb: Workbench) -> str:\n"
        '    session: Session = wb.create("u", sandbox={"sandbox_size": "medium"})\n'
        '    result = session.run("1", on_output=lambda piece: print(piece.text))\n'
        "    return result.text if result.outcome is Outcome.OK else result.explanation\n",
        encoding="utf-8",
    )
    checker = (sys.executable, "-m", "mypy", "--strict", "--cache-dir", short_dir / "cache")
    told = run(*checker, "--python-executable", installed, program, folder=short_dir)
    assert told.startswith("Success")
