"""What a fork of a warm interpreter must not share with its siblings, and what must follow its own tier."""

from __future__ import annotations

import os
import sys
from typing import Any

import workbench_guest
from workbench_guest import packages

# Imported before the fork, for all forks; other Pythons have them when they need them.
from workbench_guest.packages import asking as _asking
from workbench_guest.packages import finder as _finder
from workbench_guest.packages import guarding as _guarding

_BEFORE_THE_FORK = (_asking, _finder, _guarding)


def refresh() -> None:
    """Call once in every forked interpreter, after its environment is set. Costs nothing for what is not loaded."""
    _reopen_standard_streams()
    _reseed()
    _follow_tier()
    _find_helpers()
    packages.begin()


def _find_helpers() -> None:
    """As PYTHONPATH has it for every other Python of the sandbox; this one was forked, and has read nothing."""
    folder = os.path.join(next(iter(workbench_guest.__path__)), "importable")
    if folder not in sys.path:
        sys.path.append(folder)


def _reopen_standard_streams() -> None:
    """The zygote's stream objects remember that they were /dev/null; these look at what the descriptors are now."""
    sys.stdin = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115  lives with the process
    sys.stdout = open(1, "w", encoding="utf-8", errors="surrogateescape", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.__stdin__, sys.__stdout__, sys.__stderr__ = sys.stdin, sys.stdout, sys.stderr  # type: ignore[misc]


def _reseed() -> None:
    # `random` reseeds itself at fork; NumPy's global generator does not, and siblings would draw the same numbers.
    if (numpy_random := sys.modules.get("numpy.random")) is not None:
        numpy_random.seed(int.from_bytes(os.urandom(4), "little"))
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "manual_seed"):
        torch.manual_seed(int.from_bytes(os.urandom(8), "little"))


def _follow_tier() -> None:
    """Pools that were started with one thread before the fork get as many as the tier has CPUs."""
    wanted = os.environ.get("OMP_NUM_THREADS", "")
    if wanted.isdigit() and int(wanted) > 1:
        _set_pools(int(wanted))


def use_threads(count: int) -> None:
    """A living process gets another tier: its pools, and the variables that its children will read."""
    for name in (name for name in os.environ if name.endswith(("_NUM_THREADS", "_MAX_THREADS", "_CPU_COUNT"))):
        os.environ[name] = str(count)
    _set_pools(count)


def _set_pools(count: int) -> None:
    threadpoolctl: Any = sys.modules.get("threadpoolctl")
    if threadpoolctl is not None:
        threadpoolctl.threadpool_limits(count)
    # It keeps a number of its own, for all of its threads. While it is being imported it has no such function yet.
    torch: Any = sys.modules.get("torch")
    if hasattr(torch, "set_num_threads"):
        torch.set_num_threads(count)
