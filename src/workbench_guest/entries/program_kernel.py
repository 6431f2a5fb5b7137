"""Be the keeper of a program that is a Jupyter kernel: any language but the image's own."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence

from workbench_guest.keeper.keeper import Keeper
from workbench_guest.keeper.program import order_of
from workbench_guest.keeper.waiting import WaitingProgram

_SOCKETS = 4
_begun: list[WaitingProgram] = []


def prepare() -> None:
    """In a fork that waits: everything is imported."""


def begin(told: bytes, passed: Sequence[int]) -> None:
    """Start the program before anybody has the sandbox; it prints into what is passed."""
    _begun.append(WaitingProgram(order_of(json.loads(told)), passed))
    for descriptor in passed:
        os.close(descriptor)


def main(payload: bytes, passed: Sequence[int]) -> int:
    """Start the program and stand between it and the host, on the sockets that the host passed."""
    order = order_of(json.loads(payload))
    waiting = _begun.pop() if _begun else None
    if waiting is not None and not waiting.fits(order):
        waiting.give_up()
        waiting = None
    keeper = Keeper(order, passed[:_SOCKETS], passed[_SOCKETS:], waiting)
    keeper.run()
