"""Snapshots count against their session's limits, and never stand in the way of what it wants."""

from __future__ import annotations

import pytest
from tests.host.cells import make_kernel, run

from workbench.host_client.connection import HostConnection
from workbench.model.execution import Outcome
from workbench.wire import host as wire

pytestmark = pytest.mark.isolation


async def test_a_smaller_tier_is_not_refused_for_what_snapshots_hold(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, tier="medium")
    await run(shared_host, sandbox, "import numpy as np; x = np.ones(450 * 2**20 // 8)")
    # Each snapshot holds the array as it was.
    for _ in range(2):
        assert (await run(shared_host, sandbox, "x += 1")).outcome is Outcome.OK
    usage = await shared_host.ask(wire.MeasureSandbox(sandbox=sandbox), wire.UsageReport)
    assert usage.memory_bytes > 2**30, "else this shows nothing"
    report = await shared_host.ask(wire.ChangeTier(sandbox=sandbox, tier="standard"), wire.SandboxReport)
    assert report.tier == "standard"
    assert (await run(shared_host, sandbox, "float(x[0])")).results.text == "3.0"


async def test_what_does_not_fit_twice_is_not_kept_and_says_why(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "import numpy as np; x = np.ones(550 * 2**20 // 8)")
    result = await run(shared_host, sandbox, "x += 1; float(x[0])")
    assert (result.outcome, result.results.text) == (Outcome.OK, "2.0")
    assert not result.receipt.snapshot.current
    assert "might be needed twice" in result.receipt.snapshot.reason
    await run(shared_host, sandbox, "del x")
    assert (await run(shared_host, sandbox, "1")).receipt.snapshot.current
