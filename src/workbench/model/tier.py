"""The four sizes a sandbox comes in. Caps, not reservations."""

from __future__ import annotations

from dataclasses import dataclass

from workbench.errors import InvalidRequest

_GIB = 1024**3


@dataclass(frozen=True, slots=True, kw_only=True)
class Tier:
    """What one whole sandbox may use, all its processes together, unless a field says otherwise."""

    name: str
    vcpus: int
    """never more than the host has"""
    memory_bytes: int
    """with the files in home, /tmp and /dev/shm, which live in memory"""
    processes: int
    """processes and threads"""
    open_files: int
    """per process; the kernel has no count for a group"""
    scratch_bytes: int
    """/home/user and /tmp together; half the memory, so that full folders cannot take all of it"""
    scratch_inodes: int
    shm_bytes: int
    """/dev/shm; a quarter of the memory"""
    files_bytes: int
    """/mnt/files"""
    files_inodes: int
    """files and folders there"""


def _tier(name: str, size: int) -> Tier:
    return Tier(
        name=name,
        vcpus=size,
        memory_bytes=size * _GIB,
        processes=256 * size,
        open_files=4096,
        scratch_bytes=size * _GIB // 2,
        scratch_inodes=65536 * size,
        shm_bytes=size * _GIB // 4,
        files_bytes=10 * _GIB,
        files_inodes=1_000_000,
    )


STANDARD, MEDIUM, LARGE, XLARGE = (_tier("standard", 1), _tier("medium", 2), _tier("large", 4), _tier("xlarge", 8))
TIERS = {tier.name: tier for tier in (STANDARD, MEDIUM, LARGE, XLARGE)}


def tier_named(name: str) -> Tier:
    """The tier of that name.

    Raises:
        InvalidRequest: there is none; the message lists those there are.
    """
    try:
        return TIERS[name]
    except KeyError:
        raise InvalidRequest(f"no such tier: {name!r}; choose one of {', '.join(TIERS)}") from None


def thread_variables(vcpus: int) -> dict[str, str]:
    """Libraries ask the machine how many CPUs it has; inside a quota that answer is wrong, so they are told."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS",
             "VECLIB_MAXIMUM_THREADS", "PYTHON_CPU_COUNT")  # fmt: skip
    return dict.fromkeys(names, str(vcpus))
