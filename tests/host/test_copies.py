"""A copy of a session: files and variables in a sandbox of their own, and a list of what could not come along."""

from __future__ import annotations

import pytest
from tests.host.cells import KERNEL, make_kernel, run

from workbench.errors import InvalidRequest
from workbench.host_client.connection import HostConnection
from workbench.model.execution import MemoryState, Outcome
from workbench.wire import kernels

MADE = """
import os, numpy as np, pandas as pd
os.makedirs("sub")
os.chdir("sub")
open("beside.py", "w").write("value = 7")
import sys, beside
open("/mnt/files/kept.txt", "w").write("kept")
x = 1
df = pd.DataFrame({"a": [1, 2]})
halfway = (number for number in range(3))
next(halfway)
def f():
    return x
class Thing:
    pass
thing = Thing()
"""


async def copied(host: HostConnection, source: str, target: str) -> kernels.CopyReport:
    request = kernels.CopyInto(sandbox=source, kernel=KERNEL, to_sandbox=target, to_kernel=KERNEL)
    return await host.ask(request, kernels.CopyReport)


async def test_files_and_variables_arrive_and_the_rest_is_named(shared_host: HostConnection) -> None:
    source, target = await make_kernel(shared_host), await make_kernel(shared_host)
    assert (await run(shared_host, source, MADE)).outcome is Outcome.OK
    report = await copied(shared_host, source, target)
    assert report.carried == ("Thing", "beside", "df", "f", "np", "os", "pd", "sys", "thing", "x")
    assert list(report.not_carried) == ["halfway"]
    assert "generator" in report.not_carried["halfway"]
    assert report.files_note == ""
    seen = await run(
        shared_host,
        target,
        "x = 5\n(f(), isinstance(thing, Thing), int(df.a.sum()), beside.value, os.getcwd(), os.listdir('/tmp'),"
        " open('/mnt/files/kept.txt').read())",
    )
    assert seen.results.text == "(5, True, 3, 7, '/home/user/sub', [], 'kept')", seen.error


async def test_the_original_does_not_notice(shared_host: HostConnection) -> None:
    source, target = await make_kernel(shared_host), await make_kernel(shared_host)
    await run(shared_host, source, MADE)
    await copied(shared_host, source, target)
    await run(shared_host, target, "x = 99; open('/mnt/files/kept.txt', 'w').write('changed')")
    after = await run(shared_host, source, "(x, next(halfway), open('/mnt/files/kept.txt').read(), os.listdir('/tmp'))")
    assert after.results.text == "(1, 1, 'kept', [])"
    assert after.receipt.state is MemoryState.INTACT


async def test_exit_handlers_of_the_original_do_not_run_in_what_packs(shared_host: HostConnection) -> None:
    source, target = await make_kernel(shared_host), await make_kernel(shared_host)
    code = (
        "import atexit, os, tempfile\nfolder = tempfile.TemporaryDirectory(dir='/home/user')\n"
        "open(folder.name + '/inside', 'w').close()\n"
        "atexit.register(lambda: open('/mnt/files/ran', 'w').close())\nname = folder.name"
    )
    await run(shared_host, source, code)
    await copied(shared_host, source, target)
    look = "(os.path.exists(name + '/inside'), os.path.exists('/mnt/files/ran'))"
    assert (await run(shared_host, source, look)).results.text == "(True, False)"
    assert (await run(shared_host, target, f"import os\n{look}")).results.text == "(True, False)"


async def test_what_was_carried_survives_a_crash_of_the_copy(shared_host: HostConnection) -> None:
    source, target = await make_kernel(shared_host), await make_kernel(shared_host)
    await run(shared_host, source, MADE)
    await copied(shared_host, source, target)
    assert (await run(shared_host, target, "os._exit(1)")).receipt.state is MemoryState.RESTORED
    assert (await run(shared_host, target, "x")).results.text == "1"


async def test_an_object_that_ends_its_process_costs_the_original_nothing(shared_host: HostConnection) -> None:
    source, target = await make_kernel(shared_host), await make_kernel(shared_host)
    bad = "import os\nclass Bad:\n    def __reduce__(self):\n        os._exit(4)\nbad, x = Bad(), 1"
    await run(shared_host, source, bad)
    with pytest.raises(Exception, match="packed the variables was ended"):
        await copied(shared_host, source, target)
    after = await run(shared_host, source, "(x, os.listdir('/tmp'))")
    assert (after.results.text, after.receipt.state) == ("(1, [])", MemoryState.INTACT)


async def test_a_copy_needs_another_sandbox(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    with pytest.raises(InvalidRequest, match="a sandbox of its own"):
        await copied(shared_host, sandbox, sandbox)
