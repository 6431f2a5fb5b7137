"""Be the Python kernel of a sandbox."""

from __future__ import annotations

from collections.abc import Sequence

from workbench_guest.kernel.life import Life, build

_built: list[Life] = []
_prepared: list[int] = []


def preload() -> None:
    """In the zygote: build the kernel that every fork will have."""
    _built.append(Life(build()))


def prepare() -> None:
    """In a fork that waits: whatever can be done before the host's order."""
    _built[0].prepare()
    _built[0].warm_up()
    _prepared.append(1)


def main(payload: bytes, passed: Sequence[int]) -> int:
    """Serve the host on the sockets it passed."""
    if not _built:
        preload()
    if not _prepared:
        _built[0].prepare()
    _built[0].begin(payload, passed)
    return _built[0].run()
