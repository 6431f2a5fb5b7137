"""A memory that is kept: restored after every way of losing it, undone, branched; and nothing runs twice."""

from __future__ import annotations

import pytest
from tests.host.cells import KERNEL, make_kernel, run
from tests.host.support import WAIT_S

from workbench.host_client.connection import HostConnection
from workbench.model.execution import MemoryState, Outcome
from workbench.wire import kernels

pytestmark = pytest.mark.isolation


async def test_quick(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    print(await run(shared_host, sandbox, "x = 41; import random; random.seed(5)"))
    r = await run(shared_host, sandbox, "x += 1; print(x)")
    print(r.receipt)
    r = await run(shared_host, sandbox, "import os; os._exit(3)")
    print(r.outcome, r.explanation, r.receipt)
    r = await run(shared_host, sandbox, "print(x); x")
    print(r)
    assert r.results.text == "42"
    for n in range(3):
        r = await run(shared_host, sandbox, "import ctypes; ctypes.string_at(0)")
        assert r.receipt.state is MemoryState.RESTORED
        r = await run(shared_host, sandbox, "print(x); x")
        assert r.results.text == "42", r
    r = await run(shared_host, sandbox, "x = 7")
    r = await shared_host.ask(kernels.UndoCells(sandbox=sandbox, kernel=KERNEL), kernels.UndoReport)
    print(r)
    r = await run(shared_host, sandbox, "print(x); x")
    assert r.results.text == "42", r
    b = await shared_host.ask(kernels.BranchKernel(sandbox=sandbox, kernel=KERNEL, branch="b1", epoch=1), kernels.BranchReport)
    print(b)
