"""The helpers in real sandboxes: there in every memory, counted as nobody's variables, importable by any Python."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from tests.docs.snippets import snippets
from tests.host.cells import KERNEL, at_rest, branch, command, make_kernel, run, undo, until_affordable, value_of
from tests.host.support import WAIT_S, make_sandbox, run_code, stop
from tests.unit.workbench_guest.helpers import answering as answering_module
from tests.unit.workbench_guest.helpers.answering import answering, says

from workbench.host_client.connection import HostConnection
from workbench.host_client.find import connect_or_start
from workbench.model.capability import Level
from workbench.model.execution import MemoryState, Outcome
from workbench.settings import Settings
from workbench.wire import kernels
from workbench_guest import helpers

NAMES = tuple(helpers.__all__)
OFF = {helpers.TOOL_EXECUTION_VARIABLE: "false"}
# In which every one of them has to be a function with something to read about it.
ALL_THERE = f"all(callable(globals()[name]) and globals()[name].__doc__ for name in {NAMES!r})"
# By operation, from inside of the sandbox.
# Not the host, which has nobody to answer here: where no one listens, or somebody in the same sandbox does.
ELSEWHERE = {"WORKBENCH_CALLS": "@elsewhere"}
ANSWERS = """
def told(connection, request):
    path = request["arguments"].get("path", "")
    results = {
        "run_tool": {"data": {"messages": [{"id": 1}, {"id": 2}]}, "error": None}, "invoke_llm": "hello",
        "web_search": "hello", "proxy": {"login": "me"}, "file_link": {"url": f"http://workbench/{path}"},
        "file_key": f"key/{path}",
    }
    connection.sendall(answer(results[request["operation"]]))
workbench = Answering("@elsewhere", told, 128)
workbench.start()
"""
MISSING = f"[name for name in {NAMES!r} if name not in globals()]"


async def names_of(host: HostConnection, sandbox: str, kernel: str = KERNEL) -> list[str]:
    request = kernels.ListVariables(sandbox=sandbox, kernel=kernel, wait_s=WAIT_S)
    return [one.name for one in (await host.ask(request, kernels.VariableList)).variables]


async def test_they_are_there_and_nobody_counts_them(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, env=ELSEWHERE)
    first = await run(shared_host, sandbox, f"x = 1; {ALL_THERE}")
    assert (first.results.text, first.receipt.added) == ("True", ("x",)), first
    assert await names_of(shared_host, sandbox) == ["x"]
    assert (await run(shared_host, sandbox, "%who")).stdout.text.split() == ["x"]
    assert "Ask a language model" in (await run(shared_host, sandbox, "help(invoke_llm)")).stdout.text


async def test_one_that_is_defined_anew_is_the_agents_own_until_a_reset(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, env=ELSEWHERE)
    done = await run(shared_host, sandbox, "def invoke_llm(query): return 'mine'")
    assert done.receipt.added == ("invoke_llm",)
    assert await names_of(shared_host, sandbox) == ["invoke_llm"]
    assert await value_of(shared_host, sandbox, "invoke_llm('x')") == "'mine'"
    reset = await run(shared_host, sandbox, "%reset -f")
    assert reset.error is None, reset.error
    assert await value_of(shared_host, sandbox, f"{ALL_THERE}, invoke_llm.__module__.split('.')[0]") == (
        "(True, 'workbench_guest')"
    )
    assert await names_of(shared_host, sandbox) == []


async def test_they_are_back_after_a_restart(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, env=ELSEWHERE)
    await run(shared_host, sandbox, "del web_search; run_composio_tool = None")
    await shared_host.ask(kernels.RestartKernel(sandbox=sandbox, kernel=KERNEL), kernels.KernelReport)
    assert await value_of(shared_host, sandbox, ALL_THERE) == "True"
    assert await names_of(shared_host, sandbox) == []


async def test_undo_and_branches_have_them_and_count_none(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, env=ELSEWHERE)
    await run(shared_host, sandbox, "x = 1")
    await until_affordable(shared_host, sandbox)
    await run(shared_host, sandbox, "del invoke_llm; web_search = 'mine'; y = 2")
    await at_rest(shared_host, sandbox)
    await undo(shared_host, sandbox)
    assert await value_of(shared_host, sandbox, ALL_THERE) == "True"
    assert await names_of(shared_host, sandbox) == ["x"]
    await until_affordable(shared_host, sandbox)
    await branch(shared_host, sandbox, "b")
    assert await value_of(shared_host, sandbox, f"{ALL_THERE}, invoke_llm('x')[1][:16]", kernel="b") == (
        "(True, 'no connection to')"
    )
    assert await names_of(shared_host, sandbox, "b") == ["x"]


async def test_a_copy_has_its_own_and_what_the_agent_made_of_them(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, env=ELSEWHERE)
    await run(shared_host, sandbox, "ask = invoke_llm\ndef asked(): return invoke_llm('x')[1][:13], ask is invoke_llm")
    other = await make_kernel(shared_host, env=ELSEWHERE)
    copying = kernels.CopyInto(sandbox=sandbox, kernel=KERNEL, to_sandbox=other, to_kernel=KERNEL)
    report = await shared_host.ask(copying, kernels.CopyReport)
    assert not report.not_carried
    assert await value_of(shared_host, other, "asked()") == "('no connection', True)"
    assert await names_of(shared_host, other) == ["ask", "asked"]


@pytest.mark.parametrize("module", ["composio_helper", "workbench_helper"])
async def test_both_modules_are_importable_in_cells_and_by_every_python(
    shared_host: HostConnection, module: str
) -> None:
    sandbox = await make_kernel(shared_host, env=ELSEWHERE)
    done = await run(shared_host, sandbox, f"import {module}; {module}.invoke_llm is invoke_llm")
    assert (done.results.text, done.receipt.added) == ("True", (module,))
    script = f"import sys; from {module} import *; print(invoke_llm('x')[1][:13], '/opt/workbench' in sys.path)"
    # The image's own, and the machine's if it has one, which knows nothing of the image.
    for python in ("python", *filter(os.path.exists, ["/usr/bin/python3"])):
        result = await command(shared_host, sandbox, f'cd /tmp && {python} -c "{script}"')
        assert (result.stdout.text, result.stderr.text) == ("no connection False\n", "")
    by_the_kernel = f'import subprocess, sys; subprocess.check_output([sys.executable, "-c", {script!r}], text=True)'
    assert "no connection False" in await value_of(shared_host, sandbox, by_the_kernel)


async def test_code_without_a_kernel_imports_them_as_well(shared_host: HostConnection) -> None:
    sandbox = await make_sandbox(shared_host, env=ELSEWHERE)
    said = await run_code(
        shared_host, sandbox, "import composio_helper; print(composio_helper.invoke_llm('x')[1][:13])"
    )
    assert said == b"no connection\n"


async def test_ones_own_modules_do_not_hide_them(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, env={"PYTHONPATH": "/mnt/files/lib", **ELSEWHERE})
    await command(shared_host, sandbox, "mkdir -p /mnt/files/lib && echo answer = 42 > /mnt/files/lib/mine.py")
    result = await command(shared_host, sandbox, "python -c 'import mine, composio_helper; print(mine.answer)'")
    assert (result.stdout.text, result.stderr.text) == ("42\n", "")


async def test_without_anybody_to_answer_every_helper_says_so_at_once(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, env=ELSEWHERE)
    await run(shared_host, sandbox, "open('/mnt/files/x.txt', 'w').write('x'); open('y.txt', 'w').write('y');")
    calls = (
        "run_composio_tool('A_TOOL'), invoke_llm('x'), web_search('x'), proxy_execute('GET', '/x', 'gmail'), "
        "get_mount_file_url('x.txt'), get_mount_file_s3_key('/mnt/files/x.txt'), upload_local_file('y.txt')"
    )
    took = f"import time, os; began = time.monotonic(); told = [{calls}]; took = time.monotonic() - began"
    assert (await run(shared_host, sandbox, took)).outcome is Outcome.OK
    told = await value_of(shared_host, sandbox, "{error.partition(':')[0] for _, error in told}, took < 5")
    assert told == "({'no connection to the workbench'}, True)"
    empty = await value_of(shared_host, sandbox, "[result for result, _ in told], os.listdir('/mnt/files')")
    assert empty == "([None, '', '', None, '', '', {}], ['x.txt'])"


async def test_an_interrupt_reaches_a_call_that_waits(shared_host: HostConnection) -> None:
    """For an answer of somebody in the same sandbox who never gives one."""
    sandbox = await make_kernel(shared_host, env=ELSEWHERE)
    code = (
        "import socket, threading\nlistening = socket.socket(socket.AF_UNIX); listening.bind('\\0elsewhere')\n"
        "listening.listen(); invoke_llm('x')"
    )
    done = await run(shared_host, sandbox, code, limit_s=1.0)
    assert done.outcome is Outcome.TIMED_OUT
    assert done.receipt.state is MemoryState.INTACT, done.explanation
    assert done.error is not None
    assert "workbench_guest" not in done.error.traceback
    ended = "taken = listening.accept()[0]; taken.settimeout(5); len(taken.recv(99)) > 4, taken.recv(99)"
    assert await value_of(shared_host, sandbox, ended) == "(True, b'')"


async def test_an_interrupt_of_fifty_calls_in_a_pool_costs_no_memory(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, env=ELSEWHERE)
    code = (
        "import socket\nfrom concurrent.futures import ThreadPoolExecutor\nlistening = socket.socket(socket.AF_UNIX)\n"
        "listening.bind('\\0elsewhere'); listening.listen(128)\n"
        "with ThreadPoolExecutor(50) as pool: told = list(pool.map(invoke_llm, ['x'] * 50))"
    )
    done = await run(shared_host, sandbox, code, limit_s=1.0)
    assert done.outcome is Outcome.TIMED_OUT
    assert done.receipt.state is MemoryState.INTACT, done.explanation
    # Those threads still wait, each on its own connection, and end with it.
    ended = (
        "import threading\n"
        "waiting = [one for one in threading.enumerate() if one.name.startswith('ThreadPoolExecutor')]\n"
        "listening.settimeout(20)\nfor _ in range(50): listening.accept()[0].close()\n"
        "for one in waiting: one.join(20)\nlen(waiting), sum(one.is_alive() for one in waiting)"
    )
    assert await value_of(shared_host, sandbox, ended) == "(50, 0)"


async def test_a_session_without_tool_execution_has_the_others_only(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host, env={**OFF, **ELSEWHERE})
    gone = sorted(helpers.NEEDING_TOOL_EXECUTION)
    assert await value_of(shared_host, sandbox, MISSING) == repr([name for name in NAMES if name in gone])
    await run(shared_host, sandbox, "import os; os.environ.pop('WORKBENCH_TOOL_EXECUTION')\n%reset -f")
    assert await value_of(shared_host, sandbox, MISSING) == repr([name for name in NAMES if name in gone])
    await shared_host.ask(kernels.RestartKernel(sandbox=sandbox, kernel=KERNEL), kernels.KernelReport)
    done = await run(shared_host, sandbox, "from composio_helper import upload_local_file, invoke_llm")
    assert done.error is not None
    assert (done.error.name, done.error.message) == (
        "ImportError",
        "composio_helper has no invoke_llm: tool execution is switched off for this session",
    )
    result = await command(shared_host, sandbox, "python -c 'import workbench_helper as w; print(*w.__all__)'")
    assert sorted(result.stdout.text.split()) == sorted(set(NAMES) - set(gone))


async def test_what_the_page_on_them_shows_works_in_a_cell(shared_host: HostConnection) -> None:
    """With somebody in the same sandbox who answers as a workbench would."""
    sandbox = await make_kernel(shared_host, env=ELSEWHERE)
    source = Path(answering_module.__file__).read_text(encoding="utf-8")
    begun = await run(shared_host, sandbox, f"apart = {{}}; exec({source + ANSWERS!r}, apart)")
    assert begun.error is None, begun.error
    printed = ""
    for one in [one for one in snippets("docs/reference/helpers.md") if one.kind == "python"]:
        done = await run(shared_host, sandbox, one.body)
        assert done.error is None, (one.line, done.error)
        printed += done.stdout.text
    for words in ("2 mails", "Never again. -> hello", "http://workbench/uploads/report.txt", "http://workbench/in.csv",
                  "\nhello\n", "{'login': 'me'}", '"tags": [str]', "('hello', '')"):  # fmt: skip
        assert words in printed
    assert await value_of(shared_host, sandbox, "attachment['s3key']") == "'key/in.csv'"
    assert await value_of(shared_host, sandbox, "smart_file_extract('report.txt', False)") == "('All is well.', '')"


async def test_the_process_engine_has_them_as_well(settings: Settings, short_dir: Path) -> None:
    own = replace(settings, engine="process", min_level=Level.OPEN)
    with answering(says("hello"), str(short_dir / "calls")) as server:
        async with await connect_or_start(own, os.environ) as host:
            sandbox = await make_kernel(host, snapshots=False, env={"WORKBENCH_CALLS": server.address})
            assert await value_of(host, sandbox, f"{ALL_THERE}, invoke_llm('x')") == "(True, ('hello', ''))"
            script = "import composio_helper as c; print(c.invoke_llm('x'))"
            result = await command(host, sandbox, f'python -c "{script}"')
            assert (result.stdout.text, result.stderr.text) == ("('hello', '')\n", "")
            await stop(host)
