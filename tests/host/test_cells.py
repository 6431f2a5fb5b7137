"""Cells outlive who asked for them; what they print is kept whole; the same cell never runs twice."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.host.cells import KERNEL, all_pieces, cell, make_kernel, result_of, run, text_of
from tests.host.support import WAIT_S

from workbench.errors import Conflict
from workbench.host_client.connection import HostConnection
from workbench.host_client.find import connect
from workbench.model.execution import MemoryState, Outcome, PieceKind
from workbench.settings import Settings
from workbench.wire import host as wire
from workbench.wire import kernels

_ASKS_AND_DIES = """
import asyncio, os, sys
from workbench.host_client.find import connect
from workbench.settings import Settings
from workbench.wire import kernels
async def main():
    host = await connect(Settings.from_env(os.environ))
    sandbox, cell, code = sys.argv[1:]
    run = kernels.RunCell(sandbox=sandbox, kernel="main", cell=cell, code=code, limit_s=60)
    await host.ask(run, kernels.CellReport)
    print("asked", flush=True)
    await asyncio.sleep(600)
asyncio.run(main())
"""


async def test_a_client_killed_in_the_middle_of_a_cell_costs_none_of_its_output(
    shared_host: HostConnection, shared_settings: Settings
) -> None:
    sandbox = await make_kernel(shared_host)
    code = (
        "import os, time\nprint('begun')\n"
        "while not os.path.exists('/mnt/files/go'): time.sleep(0.01)\n"
        "for number in range(200_000): print(number)"
    )
    client = subprocess.Popen(
        [sys.executable, "-c", _ASKS_AND_DIES, sandbox, "c-orphan", code],
        env={**os.environ, **shared_settings.to_env()},
        stdout=subprocess.PIPE,
    )
    assert client.stdout is not None
    with client.stdout:
        assert await asyncio.to_thread(client.stdout.readline) == b"asked\n"
        client.send_signal(signal.SIGKILL)
        client.wait(WAIT_S)
    go = kernels.RunCommand(sandbox=sandbox, cell="c-go", command="touch /mnt/files/go", limit_s=30.0, wait_s=30.0)
    await shared_host.ask(go, kernels.CellReport)
    async with await connect(shared_settings) as another:
        pieces = await all_pieces(another, sandbox, "c-orphan")
        waited = kernels.WaitCell(sandbox=sandbox, cell="c-orphan", wait_s=WAIT_S)
        report = await another.ask(waited, kernels.CellReport)
    assert text_of(pieces) == "begun\n" + "".join(f"{number}\n" for number in range(200_000))
    assert report.result is not None
    assert report.result.outcome is Outcome.OK
    assert report.result.stdout.lines == 200_001


async def test_fifty_megabytes_are_there_byte_for_byte_in_spool_and_file(
    shared_host: HostConnection, shared_settings: Settings
) -> None:
    sandbox = await make_kernel(shared_host, files="wide")
    request = cell(
        sandbox,
        "import random; random.seed(1)\ntext = '%050d\\n' * 1_000_000 % tuple(range(1_000_000))\nprint(text, end='')",
    )
    result = await result_of(shared_host, request)
    expected = "%050d\n" * 1_000_000 % tuple(range(1_000_000))
    assert text_of(await all_pieces(shared_host, sandbox, request.cell)) == expected
    assert result.stdout.characters == len(expected)
    assert result.stdout.lines == 1_000_000
    assert len(result.stdout.text) <= 40_000
    assert result.stdout.text.startswith(expected[:1000])
    assert result.stdout.text.endswith(expected[-1000:])
    assert result.stdout.file_path is not None
    whole = shared_settings.data_dir / "files" / "wide" / Path(result.stdout.file_path).relative_to("/mnt/files")
    assert whole.read_text() == expected
    assert result.stdout.file_path in result.stdout.note
    inside = await run(shared_host, sandbox, f"open({result.stdout.file_path!r}).read() == text")
    assert inside.results.text == "True"


async def test_a_long_value_is_whole_in_its_file(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    result = await run(shared_host, sandbox, "value = 'ü' * 100_000; value")
    assert result.results.characters == 100_002
    assert result.results.file_path is not None
    again = await run(shared_host, sandbox, f"open({result.results.file_path!r}).read() == repr(value)")
    assert again.results.text == "True"


async def test_twenty_thousand_displays_arrive_in_order(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    request = cell(sandbox, "from IPython.display import display\nfor n in range(20_000): display(n)")
    result = await result_of(shared_host, request)
    pieces = await all_pieces(shared_host, sandbox, request.cell)
    shown = [piece.display.data["text/plain"] for piece in pieces if piece.display is not None]
    assert shown == [str(number) for number in range(20_000)]
    assert len(result.displays) + result.displays_left_out == 20_000
    assert result.displays_file_path is not None
    counted = await run(shared_host, sandbox, f"sum(1 for _ in open({result.displays_file_path!r}))")
    assert int(counted.results.text) == result.displays_left_out


async def test_the_same_cell_asked_again_is_the_same_cell(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "count = 0")
    request = cell(sandbox, "count += 1; count")
    results = await asyncio.gather(*(result_of(shared_host, request) for _ in range(5)))
    assert {result.results.text for result in results} == {"1"}
    assert (await run(shared_host, sandbox, "count")).results.text == "1"
    other = kernels.RunCell(sandbox=sandbox, kernel=KERNEL, cell=request.cell, code="2", limit_s=1.0)
    with pytest.raises(Conflict):
        await shared_host.ask(other, kernels.CellReport)


async def test_cells_sent_at_once_run_in_their_order(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, "seen = []")
    requests = [cell(sandbox, f"seen.append({number})", wait_s=0.0) for number in range(30)]
    for request in requests:
        await shared_host.ask(request, kernels.CellReport)
    assert (await run(shared_host, sandbox, "print(seen)")).stdout.text == f"{list(range(30))}\n"


async def test_a_full_mount_leaves_a_reason_instead_of_a_path(shared_host: HostConnection) -> None:
    """A file stands where the folder of outputs would be: as unusable as a full disk, and quicker to make."""
    sandbox = await make_kernel(shared_host)
    result = await run(shared_host, sandbox, "open('/mnt/files/outputs', 'w').close()\nprint('x' * 100_000)")
    assert result.outcome is Outcome.OK
    assert result.stdout.file_path is None
    assert result.stdout.note
    assert result.stdout.characters == 100_001


async def test_what_is_over_the_spool_is_named(shared_host: HostConnection) -> None:
    """The fixture's cap is the default one, 256 MiB."""
    sandbox = await make_kernel(shared_host)
    request = cell(sandbox, "for _ in range(300): print('x' * 2**20)")
    result = await result_of(shared_host, request)
    assert result.outcome is Outcome.OK
    assert result.stdout.characters >= 300 * 2**20
    assert "256 MiB" in result.stdout.note


async def test_a_new_tier_reaches_the_pools_of_a_living_kernel(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await shared_host.ask(wire.ChangeTier(sandbox=sandbox, tier="medium"), wire.SandboxReport)
    threads = "{pool['num_threads'] for pool in threadpoolctl.threadpool_info()}"
    code = f"import os, numpy, threadpoolctl\n{threads}, os.environ['OMP_NUM_THREADS']"
    wanted = min(2, len(os.sched_getaffinity(0)))
    result = await run(shared_host, sandbox, code)
    assert result.results.text == f"({{{wanted}}}, '{wanted}')"
    assert result.receipt.state is MemoryState.INTACT


async def test_start_up_code_is_run_in_every_new_memory(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    start = kernels.StartKernel(sandbox=sandbox, kernel="second", epoch=1, start_up="ready = 'yes'")
    assert (await shared_host.ask(start, kernels.KernelReport)).start_up_error == ""
    ask = kernels.RunCell(sandbox=sandbox, kernel="second", cell="c-1", code="ready", limit_s=30.0, wait_s=30.0)
    assert (await result_of(shared_host, ask)).results.text == "'yes'"
    await shared_host.ask(kernels.RestartKernel(sandbox=sandbox, kernel="second"), kernels.KernelReport)
    again = kernels.RunCell(sandbox=sandbox, kernel="second", cell="c-2", code="ready", limit_s=30.0, wait_s=30.0)
    assert (await result_of(shared_host, again)).results.text == "'yes'"
    broken = kernels.StartKernel(sandbox=sandbox, kernel="third", epoch=1, start_up="1/0")
    assert "ZeroDivisionError" in (await shared_host.ask(broken, kernels.KernelReport)).start_up_error


async def test_pictures_and_tables_are_displays(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    result = await run(shared_host, sandbox, "import matplotlib.pyplot as plt\nplt.plot([1, 2]);")
    chart = "application/vnd.workbench.chart+json"
    assert [list(display.data) for display in result.displays] == [["text/plain", "image/png", chart]]
    table = await run(shared_host, sandbox, "import pandas as pd\npd.DataFrame({'a': [1]})")
    assert "text/html" in table.displays[0].data
    assert table.results.text == "   a\n0  1"
    assert PieceKind.DISPLAY.value == "display"
