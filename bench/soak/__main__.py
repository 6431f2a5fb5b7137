"""python -m bench.soak [--minutes 10] [--lanes 8] [--seed N] [--state] [--as-user] [--write bench/SOAK.md]"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import subprocess
import sys
from pathlib import Path

from bench.soak.run import CELLS, STATE, soak
from bench.table import keep
from workbench.settings import Settings

_ROOT = Path(__file__).resolve().parent.parent.parent


def main() -> int:
    """Entry point."""
    parser = argparse.ArgumentParser(description="many checked sessions at once, with kernels killed at random")
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--lanes", type=int, default=8, help="sessions at the same time")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6), help="of every choice that is made")
    parser.add_argument(
        "--state", action="store_true", help="of memories that are kept, and not of cells of every kind"
    )
    parser.add_argument("--as-user", action="store_true", help="by a fresh user without any right; only root can")
    parser.add_argument("--write", type=Path, help="keep the report in this file")
    arguments = parser.parse_args()
    scenario = STATE if arguments.state else CELLS
    by_root = os.geteuid() == 0 and not arguments.as_user
    if arguments.as_user:
        text = _as_user(arguments)
    else:
        settings = Settings.from_env(os.environ)
        text = asyncio.run(soak(settings, arguments.minutes * 60, arguments.lanes, arguments.seed, scenario))
    print(text)
    if arguments.write:
        who = "root" if by_root else "ordinary user"
        keep(arguments.write, f"{scenario.name.lower()}, {who}", text, title="Soak")
    return int("\nPASS." not in text)


def _as_user(arguments: argparse.Namespace) -> str:
    options = [f"--minutes={arguments.minutes}", f"--lanes={arguments.lanes}", f"--seed={arguments.seed}"]
    options += ["--state"] * arguments.state
    command = [str(_ROOT / ".ci" / "as-ordinary-user"), ".venv/bin/python", "-m", "bench.soak", *options]
    done = subprocess.run(command, cwd=_ROOT, stdout=subprocess.PIPE, text=True, check=False)
    _, found, report = done.stdout.partition("## ")
    return f"{found}{report}".rstrip() or "FAIL. It did not run."


if __name__ == "__main__":
    sys.exit(main())
