"""When a snapshot is taken, and what it may cost: almost always, and never a cell."""

from __future__ import annotations

import asyncio

import pytest
from tests.host.cells import at_rest, make_kernel, run, undo, until_affordable, value_of

from workbench.errors import Conflict
from workbench.host_client.connection import HostConnection
from workbench.model.execution import MemoryState, Outcome
from workbench.model.tier import STANDARD

pytestmark = pytest.mark.isolation

# What an agent's session looks like: a table, arrays for BLAS, a pool of threads that waits.
SESSION = """\
import concurrent.futures, json, re, numpy as np, pandas as pd, matplotlib.pyplot as plt
frame = pd.DataFrame(np.random.default_rng(0).random((2_500_000, 10)), columns=list('abcdefghij'))
square = np.random.default_rng(1).random((400, 400))
pool = concurrent.futures.ThreadPoolExecutor(4); _ = list(pool.map(abs, range(8)))
notes = {}
"""
WORK = (
    "_ = square @ square",
    "notes['mean'] = frame.mean().to_dict()",
    "frame['k'] = frame['a'] * 2; del frame['k']",
    "_ = list(pool.map(len, ['a', 'bb']))",
    "small = frame.head(1000).groupby((frame['a'] * 10).astype(int)).sum()",
    "plt.plot(frame['a'].head(100)); plt.show()",
    "1 / 0",
    "!echo from bash",
    "import asyncio\nawait asyncio.sleep(0.01)",
    "frame.iloc[:1000, 0] = 0.5",
    "open('/tmp/notes.json', 'w').write(json.dumps(notes))",
    "text = re.sub('a', 'b', 'a' * 100_000)",
)
# Between two calls of an agent, which thinks; waited for only as far as it matters for what is affordable.
THOUGHT_S = 1.0


async def test_of_forty_mixed_cells_at_least_95_in_100_have_a_snapshot_after_them(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, tier=STANDARD.name)
    assert (await run(shared_host, sandbox, SESSION)).error is None
    had, without = 0, []
    for number in range(40):
        result = await run(shared_host, sandbox, WORK[number % len(WORK)])
        assert result.outcome in (Outcome.OK, Outcome.RAISED), result.explanation
        assert result.receipt.epoch == 1
        state = (await at_rest(shared_host, sandbox)).snapshots
        had += state.current
        without += [] if state.current else [(number, state.reason)]
        await asyncio.sleep(min(THOUGHT_S, 10 * state.cost_s))
    assert had >= 38, without
    crash = await run(shared_host, sandbox, "import os; os._exit(1)")
    assert crash.receipt.state is MemoryState.RESTORED
    assert await value_of(shared_host, sandbox, "len(frame), sorted(notes)") == "(2500000, ['mean'])"


async def test_a_large_table_that_every_cell_rewrites_never_costs_a_cell(shared_host: HostConnection) -> None:
    """Each rewrite makes every page of the snapshots another's than the kernel's."""
    sandbox = await make_kernel(shared_host, tier=STANDARD.name)
    await run(shared_host, sandbox, "import numpy as np, pandas as pd\nframe = pd.DataFrame(np.ones((2_500_000, 10)))")
    for number in range(30):
        code = "frame = frame * 2" if number % 2 else "frame *= 2"
        result = await run(shared_host, sandbox, f"{code}\nfloat(frame.iloc[0, 0])")
        assert (result.outcome, result.receipt.epoch) == (Outcome.OK, 1), (number, result.explanation)
        assert result.results.text == str(2.0 ** (number + 1))


@pytest.mark.parametrize(
    "code",
    [
        "big = np.ones(int({rest} // 8)); len(big) > 0",
        "table *= 2; big = np.ones(int({rest} // 8)); float(table[-1]) == 2.0",
        "table *= 2; big = []\nfor _ in range(100): big.append(np.ones(int({rest} // 800)))\nfloat(table[-1]) == 2.0",
        "table *= 2; big = [bytearray(1 << 20) for _ in range(int({rest}) >> 20)]\nfloat(table[-1]) == 2.0",
    ],
    ids=["beside a table", "a table rewritten and one array", "and many arrays", "and many buffers"],
)
async def test_a_cell_that_needs_three_quarters_of_the_memory_gets_them(shared_host: HostConnection, code: str) -> None:
    """It would fit without snapshots; with what they hold it would not, so they go and not the cell."""
    sandbox = await make_kernel(shared_host, tier=STANDARD.name)
    table, rest = STANDARD.memory_bytes * 0.35, STANDARD.memory_bytes * 0.40
    await run(shared_host, sandbox, f"import numpy as np\ntable = np.ones(int({table} // 8))")
    await until_affordable(shared_host, sandbox)
    await run(shared_host, sandbox, "kept = 1")
    result = await run(shared_host, sandbox, code.format(rest=rest))
    assert (result.outcome, result.receipt.epoch) == (Outcome.OK, 1), result.explanation
    assert result.results.text == "True"
    assert await value_of(shared_host, sandbox, "kept") == "1"


async def test_what_was_given_up_for_memory_is_told_and_comes_back_with_the_room(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, tier=STANDARD.name)
    await run(shared_host, sandbox, "import numpy as np\nkept = 1")
    await run(shared_host, sandbox, f"big = np.ones({STANDARD.memory_bytes // 8 // 10 * 6})")
    report = await at_rest(shared_host, sandbox)
    assert not report.snapshots.current
    assert "MiB" in report.snapshots.reason
    told = await run(shared_host, sandbox, "1")
    assert (told.receipt.snapshot.current, "MiB" in told.receipt.snapshot.reason) == (False, True)
    with pytest.raises(Conflict):
        await undo(shared_host, sandbox, 1)
    await run(shared_host, sandbox, "del big")
    await until_affordable(shared_host, sandbox)
    assert (await run(shared_host, sandbox, "kept += 1")).receipt.snapshot.current
    assert (await run(shared_host, sandbox, "import os; os._exit(1)")).receipt.state is MemoryState.RESTORED
    assert await value_of(shared_host, sandbox, "kept, 'big' in globals()") == "(2, False)"


async def test_a_snapshot_that_was_given_up_for_a_cell_that_took_everything_is_told(
    shared_host: HostConnection,
) -> None:
    """A table that is rewritten while more is taken than there is: restored, or it is said why not."""
    sandbox = await make_kernel(shared_host, tier=STANDARD.name)
    await run(shared_host, sandbox, f"import numpy as np\ntable = np.ones({STANDARD.memory_bytes // 8 // 10 * 2})")
    await until_affordable(shared_host, sandbox)
    await run(shared_host, sandbox, "kept = 1")
    await until_affordable(shared_host, sandbox)
    result = await run(shared_host, sandbox, "table *= 3\nx = []\nwhile True: x.append(np.ones(1_000_000))")
    assert result.outcome in (Outcome.LOST, Outcome.RAISED)
    if result.receipt.state is MemoryState.LOST:
        assert result.receipt.snapshot.current
        # By us, or by whoever ends processes at the limit.
        told = result.receipt.reason + result.explanation
        assert "its snapshot was given up" in told or "its snapshot was ended before it" in told
    else:
        assert await value_of(shared_host, sandbox, "kept") == "1"
