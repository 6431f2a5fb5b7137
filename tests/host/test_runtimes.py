"""Runtimes of an operator's, in a real host that is told of them by its settings."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from tests.host.cells import KERNEL, run
from tests.runtimes.programs.hosted import STOCK, write_descriptions

from workbench.errors import HostUnavailable, InvalidRequest
from workbench.host_client.connection import HostConnection
from workbench.host_client.find import connect_or_start
from workbench.model.execution import MemoryState, Outcome
from workbench.model.ids import new_sandbox_id
from workbench.settings import Settings
from workbench.wire import host as wire
from workbench.wire import kernels

pytestmark = pytest.mark.isolation


@pytest.fixture
def runtimes(short_dir: Path) -> Path:
    """A folder with one description."""
    write_descriptions(short_dir / "runtimes", STOCK)
    return short_dir / "runtimes"


@pytest.fixture
async def operators(settings: Settings, runtimes: Path) -> AsyncIterator[HostConnection]:
    """A host that was told of the folder."""
    async with await connect_or_start(replace(settings, runtimes_dir=str(runtimes)), os.environ) as connection:
        yield connection


async def make(host: HostConnection, runtime: str) -> str:
    sandbox = new_sandbox_id()
    await host.ask(wire.CreateSandbox(sandbox=sandbox, kernel=True), wire.SandboxReport)
    start = kernels.StartKernel(sandbox=sandbox, kernel=KERNEL, epoch=1, runtime=runtime)
    await host.ask(start, kernels.KernelReport)
    return sandbox


async def test_a_runtime_of_the_operator_s_runs_beside_the_shipped_ones(operators: HostConnection) -> None:
    for runtime, code in (("stock", "import os\nprint(os.environ['OF_THE_DESCRIPTION'])"), ("bash", "echo yes")):
        result = await run(operators, await make(operators, runtime), code)
        assert (result.outcome, result.stdout.text) == (Outcome.OK, "yes\n")
    with pytest.raises(InvalidRequest, match="no such runtime: 'cobol'"):
        await make(operators, "cobol")


async def test_a_program_that_takes_too_much_memory_is_told_so(operators: HostConnection) -> None:
    sandbox = await make(operators, "stock")
    code = "import os\nos.write(1, b'last words\\n')\ntaken = b'y' * 3_000_000_000"
    result = await run(operators, sandbox, code)
    assert (result.outcome, result.stdout.text) == (Outcome.LOST, "last words\n")
    assert "the kernel ran out of memory and was ended" in result.explanation
    assert (result.receipt.state, result.receipt.epoch) == (MemoryState.LOST, 2)
    assert (await run(operators, sandbox, "print('on')")).stdout.text == "on\n"


async def test_a_tier_changes_under_a_program_that_is_asked_nothing(operators: HostConnection) -> None:
    sandbox = await make(operators, "stock")
    await run(operators, sandbox, "kept = 41")
    await operators.ask(wire.ChangeTier(sandbox=sandbox, tier="medium"), wire.SandboxReport)
    assert (await run(operators, sandbox, "print(kept)")).stdout.text == "41\n"


async def test_a_host_does_not_start_with_a_description_that_it_cannot_read(settings: Settings, runtimes: Path) -> None:
    (runtimes / "odd.json").write_text(json.dumps({"name": "odd"}))
    with pytest.raises(HostUnavailable, match=r"odd\.json is no description of a runtime"):
        await connect_or_start(replace(settings, runtimes_dir=str(runtimes)), os.environ)
