"""Be the keeper of a program that is a Jupyter kernel: any language but the image's own."""

from __future__ import annotations

import json
from collections.abc import Sequence

from workbench_guest.keeper.keeper import Keeper, order_of

_SOCKETS = 4


def prepare() -> None:
    """In a fork that waits: everything is imported. A program that is up already is for a pool, some day."""


def main(payload: bytes, passed: Sequence[int]) -> int:
    """Start the program and stand between it and the host, on the sockets that the host passed."""
    keeper = Keeper(order_of(json.loads(payload)), passed[:_SOCKETS], passed[_SOCKETS:])
    keeper.run()
