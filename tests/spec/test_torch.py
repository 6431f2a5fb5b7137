"""PyTorch: there in every sandbox, at no cost for who does not import it, and soon for who does.

Never skipped: the image is not whole without it.
"""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from tests.host.cells import at_rest, make_kernel, run, undo, until_affordable, value_of
from tests.host.conftest import shared_host, shared_settings
from tests.host.support import host_pids, zygotes

from workbench.host_client.connection import HostConnection
from workbench.model.image import Image
from workbench.model.tier import MEDIUM
from workbench.settings import Settings

__all__ = ["shared_host", "shared_settings"]

pytestmark = pytest.mark.timeout(120)
# What is measured inside, without what a sandbox costs.
IMPORT = "import time; began = time.perf_counter(); import torch; took = time.perf_counter() - began"
# Several threads where the tier has them.
WORK = "square = torch.ones(600, 600); float((square @ square).sum())"


@pytest.fixture(autouse=True)
def torch_has_arrived(image: Image) -> None:
    """Fails where a skip would hide that it is missing."""
    assert Path(image.late).exists(), "PyTorch is not there: run `workbench image build --late`"


async def test_it_is_imported_in_a_sandbox_and_the_one_that_is_warm_has_it_much_sooner(
    shared_host: HostConnection,
) -> None:
    plain = await make_kernel(shared_host)
    assert (await run(shared_host, plain, f"{IMPORT}\n{WORK}")).results.text == str(600.0**3)
    warm = await make_kernel(shared_host, warm="torch")
    assert (await run(shared_host, warm, f"{IMPORT}\n{WORK}")).results.text == str(600.0**3)
    slow, soon = [float(await value_of(shared_host, one, "took")) for one in (plain, warm)]
    print(f"import torch: {slow:.2f} s, and {soon * 1000:.2f} ms where it is warm")
    assert soon < slow / 10, (soon, slow)
    found = await run(
        shared_host, warm, "!python3 -I -c 'from importlib.util import find_spec; find_spec(\"torch\").origin'"
    )
    assert found.error is None, "and by every other Python of the sandbox"


async def test_a_session_that_does_not_import_it_has_nothing_of_it(
    shared_host: HostConnection, shared_settings: Settings
) -> None:
    (host,) = host_pids(shared_settings)
    await make_kernel(shared_host, warm="torch")
    before = {pid: _mapped(pid) for pid in zygotes(host)}
    assert sorted("libtorch" in maps for maps in before.values()) == [False, True], "a zygote of its own"
    began = time.perf_counter()
    sandbox = await make_kernel(shared_host)
    assert time.perf_counter() - began < 10
    told = await value_of(
        shared_host, sandbox, "'torch' in __import__('sys').modules, 'torch' in open('/proc/self/maps').read()"
    )
    assert told == "(False, False)"
    assert {pid: "libtorch" in _mapped(pid) for pid in zygotes(host)} == {
        pid: "libtorch" in maps for pid, maps in before.items()
    }


async def test_its_threads_follow_the_tier_and_its_memory_can_be_undone(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, warm="torch", tier=MEDIUM.name)
    cpus = min(MEDIUM.vcpus, len(os.sched_getaffinity(0)))
    assert await value_of(shared_host, sandbox, "import torch; torch.get_num_threads()") == str(cpus)
    await run(
        shared_host, sandbox, f"{WORK}\nweights = torch.zeros(3, requires_grad=True); loss = (weights ** 2).sum()"
    )
    await until_affordable(shared_host, sandbox)
    await run(shared_host, sandbox, "loss.backward(); weights = None")
    assert (await at_rest(shared_host, sandbox)).snapshots.current
    await undo(shared_host, sandbox, 1)
    # Pools of threads that a copy lost would never answer.
    after = await run(shared_host, sandbox, f"{WORK} and weights.tolist()")
    assert after.results.text == "[0.0, 0.0, 0.0]", after.error


async def test_two_sessions_of_one_zygote_draw_different_numbers(shared_host: HostConnection) -> None:
    drawn = set()
    for _ in range(2):
        sandbox = await make_kernel(shared_host, warm="torch")
        drawn.add(await value_of(shared_host, sandbox, "import torch; torch.rand(4).tolist()"))
    assert len(drawn) == 2


def _mapped(pid: int) -> str:
    return Path(f"/proc/{pid}/maps").read_text()
