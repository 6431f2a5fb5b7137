"""Variables on their way into another sandbox: packed by a copy of one kernel, taken up by another.

The report of both goes to the host, which never looks into the file.
"""

from __future__ import annotations

import contextlib
import json
import os
from typing import Any


def pack(names: dict[str, Any], path: str) -> None:
    """In a copy that ends afterwards: into a file, with the report on standard output and nothing else there."""
    report = os.dup(1)
    nowhere = os.open("/dev/null", os.O_RDWR | os.O_CLOEXEC)
    # Objects run code of the agent's while they are packed, and may print.
    for number in (1, 2):
        os.dup2(nowhere, number)
    # Loaded late: it costs memory, and most sessions never need it.
    from workbench_guest.kernel import carry

    told: dict[str, Any] = carry.pack(names, path)
    with contextlib.suppress(OSError):
        told["cwd"] = os.getcwd()
    with os.fdopen(report, "wb") as file:
        file.write(json.dumps(told).encode())


def unpack(order: dict[str, Any], namespace: dict[str, Any]) -> dict[str, Any]:
    """In a kernel: what the file has, and where the other one stood, so that its own modules are found."""
    from workbench_guest.kernel import carry

    with contextlib.suppress(OSError):
        os.chdir(order["cwd"])
    try:
        return {"status": "ok", **carry.unpack(order["path"], namespace)}
    except OSError as problem:
        return {"status": "error", "reason": str(problem)}
