"""A box that a user runs: a folder with the helper, a Python without any package, and the variables that came along."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workbench.local_sandbox import HELPER_FILE, helper_source

_RUN_S = 100.0
# What it prints itself is apart from the answer, which is the last line.
_PROGRAM = "from composio_helper import *\nimport json, sys\n{code}\nprint()\nprint(json.dumps(answer))\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """How a program in a box ended."""

    answer: Any
    printed: str
    complaint: str = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Box:
    """One. Nothing of this machine's environment is in it."""

    folder: Path
    env: Mapping[str, str] = field(repr=False)
    # Without `site`: nothing that is installed can be imported.
    python: tuple[str, ...] = (sys.executable, "-S", "-B", "-W", "error")

    def run(self, code: str, **more: str) -> Ran:
        """A program that sets `answer`."""
        done = subprocess.run(
            [*self.python, "-c", _PROGRAM.format(code=code)],
            cwd=self.folder,
            env={**self.env, **more},
            capture_output=True,
            text=True,
            timeout=_RUN_S,
            check=False,
        )
        assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
        printed, _, last = done.stdout.rstrip("\n").rpartition("\n")
        return Ran(answer=json.loads(last), printed=printed.removesuffix("\n"), complaint=done.stderr)

    def answer(self, code: str, **more: str) -> Any:
        """Of an expression."""
        return self.run(f"answer = {code}", **more).answer


def box_in(folder: Path, env: Mapping[str, str]) -> Box:
    """With the helper in it."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / HELPER_FILE).write_text(helper_source(), encoding="utf-8")
    return Box(folder=folder, env=env)
