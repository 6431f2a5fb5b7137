"""Helpers from a cell to the services and back: a real server, host and sandbox, and everything that code may be."""

from __future__ import annotations

import asyncio
import io
import os
import re
import urllib.request
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.helpers.serving import RAW, ran, value
from tests.host.support import WAIT_S
from tests.restart.server import Server
from tests.services.running import Running

from workbench import Session, Workbench
from workbench.host_client.find import connect_or_start
from workbench.wire import host as wire

pytestmark = pytest.mark.isolation

FIFTY = """\
from concurrent.futures import ThreadPoolExecutor
def fifty(mark):
    with ThreadPoolExecutor(50) as pool:
        told = list(pool.map(lambda n: invoke_llm(f'say:{mark} {n}'), range(50)))
    return [one for n, one in enumerate(told) if one != (f'{mark} {n}', '')]
"""


def fetched(url: str) -> bytes:
    """By anybody: without a key, a cookie or a proxy."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(url, timeout=30) as answer:
        body: bytes = answer.read()
    return body


def counted(server: Server, series: str) -> float:
    """Of the metrics."""
    with server.client() as client:
        found = re.search(rf"^{re.escape(series)} (\S+)$", client.get("/metrics").text, re.MULTILINE)
    return float(found[1]) if found else 0.0


def test_a_question_is_answered_and_its_tokens_are_told_everywhere(
    server: Server, bench: Workbench, session: Session, models: Running
) -> None:
    answered = 'workbench_helper_calls_total{operation="invoke_llm",outcome="ok"}'
    tokens = [f'workbench_model_tokens_total{{kind="{kind}"}}' for kind in ("prompt", "completion")]
    before = [counted(server, series) for series in (answered, *tokens)]
    result = ran(session, "invoke_llm('say:one two three', 'low')")
    assert result.results == "('one two three', '')"
    assert [counted(server, series) for series in (answered, *tokens)] == [before[0] + 1, before[1] + 3, before[2] + 3]
    use = result.receipt.helpers
    assert (use.calls, use.failed, use.prompt_tokens, use.completion_tokens) == (1, 0, 3, 3)
    (entry,) = [one for one in bench.audit(session=session.id) if one.action == "helper.invoke_llm"]
    assert (entry.outcome, entry.user) == ("ok", "tester")
    assert entry.detail.startswith(f"{result.cell_id}, ")
    assert entry.detail.endswith("3 and 3 tokens")
    (asked,) = models.seen()
    assert asked.headers["authorization"] == f"Bearer {server.settings.llm_key}"
    assert asked.json()["model"] == "small"
    assert asked.json()["reasoning_effort"] == "low"


def test_a_search_is_answered_with_its_sources(server: Server, session: Session, searches: Running) -> None:
    text, error = value(session, "web_search('rust & co')")
    assert error == ""
    assert text.startswith("1. Page 0 & more of rust & co\nhttps://example.org/page?number=0&of=many\n")
    (asked,) = searches.seen()
    assert asked.headers["x-subscription-token"] == server.settings.search_key


def test_tools_and_the_proxy_say_that_there_is_no_toolkit_and_ask_nobody(
    session: Session, models: Running, searches: Running
) -> None:
    (result, tool), (reply, proxy) = value(
        session,
        "(run_composio_tool('NOWHERE_SEND', {'to': 'a'}), proxy_execute('GET', '/me', 'nowhere'))",
    )
    assert not result
    assert ("NOWHERE_SEND" in tool, "no toolkit is configured" in tool) == (True, True)
    assert not reply
    assert ("nowhere" in proxy, "is not configured on this workbench" in proxy) == (True, True)
    assert models.seen() + searches.seen() == []


def test_files_that_are_uploaded_are_had_from_their_links_by_anybody(session: Session) -> None:
    one, several, folder, mounted = value(
        session,
        """\
import os
os.makedirs('/tmp/data/deep', exist_ok=True)
for path, text in (('/tmp/a b.txt', 'one'), ('/tmp/data/x', 'x'), ('/tmp/data/deep/y', 'y'), ('/mnt/files/m', 'm')):
    with open(path, 'w') as file: file.write(text)
upload_local_file('/tmp/a b.txt'), upload_local_file('/tmp/a b.txt', '/mnt/files/m'), upload_local_file('/tmp/data'), \\
    get_mount_file_url('/mnt/files/m')
""",
    )
    assert [error for _, error in (one, several, folder, mounted)] == [""] * 4
    assert fetched(one[0]["s3_url"]) == b"one"
    assert one[0]["uploaded_file"] == "/mnt/files/uploads/a b.txt"
    with zipfile.ZipFile(io.BytesIO(fetched(several[0]["s3_url"]))) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {"a b.txt": b"one", "m": b"m"}
    with zipfile.ZipFile(io.BytesIO(fetched(folder[0]["s3_url"]))) as archive:
        assert {name: archive.read(name) for name in archive.namelist()} == {"data/x": b"x", "data/deep/y": b"y"}
    assert fetched(mounted[0]) == b"m"


def test_without_tool_execution_three_are_missing_and_cannot_be_asked_for(bench: Workbench, models: Running) -> None:
    session = bench.create("tester", sandbox={"enable_tool_execution": False})
    try:
        here, modules, told = value(
            session,
            f"""{RAW}
import composio_helper, workbench_helper
names = 'run_composio_tool', 'invoke_llm', 'web_search', 'proxy_execute', 'upload_local_file'
refused = []
for name in names[:3]:
    try: exec(f'from workbench_helper import {{name}}')
    except ImportError as problem: refused.append('switched off' in str(problem))
[name in globals() for name in names], \\
    [[hasattr(module, name) for name in names[3:]] for module in (composio_helper, workbench_helper)] + [refused], \\
    [ask('invoke_llm', query='x')['code'], ask('web_search', query='x')['code'], ask('run_tool', tool_slug='X')['code'],
     ask('proxy', toolkit='x')['code']]
""",
        )
        assert here == [False, False, False, True, True]
        assert modules == [[True, True], [True, True], [True, True, True]]
        # The last one is allowed, and says what it lacks.
        assert told == ["denied", "denied", "denied", "invalid_request"]
        # What is taken away from the environment of a process of the sandbox's own is asked for in vain as well.
        script = "env -u WORKBENCH_TOOL_EXECUTION python3 -c 'from workbench_helper import *; print(invoke_llm(\"x\"))'"
        assert "switched off" in session.bash(script).stdout
        assert models.seen() == []
    finally:
        session.delete()


ASYNC = """\
import asyncio
async def all_of_them():
    return await asyncio.gather(*(asyncio.to_thread(invoke_llm, f'say:{n}') for n in range(30)))
told = await all_of_them()
[one for n, one in enumerate(told) if one != (str(n), '')]
"""
CHILD = """\
import subprocess, sys
code = 'from workbench_helper import invoke_llm; print(invoke_llm("say:from a child"))'
subprocess.run([sys.executable, '-c', code], capture_output=True, text=True).stdout
"""
FORKED = """\
import multiprocessing
with multiprocessing.get_context('fork').Pool(4) as pool: told = pool.map(invoke_llm, [f'say:{n}' for n in range(8)])
[one for n, one in enumerate(told) if one != (str(n), '')]
"""


@pytest.mark.parametrize(
    ("code", "wanted", "calls"),
    [
        pytest.param(f"{FIFTY}fifty('thread')", [], 50, id="fifty threads"),
        pytest.param(ASYNC, [], 30, id="asyncio"),
        pytest.param(CHILD, "('from a child', '')\n", 1, id="a child"),
        pytest.param(FORKED, [], 8, id="forks"),
    ],
)
def test_code_of_every_kind_is_answered_and_counted_for_its_cell(
    session: Session, code: str, wanted: object, calls: int
) -> None:
    assert value(session, code) == wanted
    last = next(session.history(newest_first=True))
    assert last.result is not None
    assert (last.result.receipt.helpers.calls, last.result.receipt.helpers.failed) == (calls, 0)


def test_a_script_that_bash_runs_is_answered_and_counted_for_the_command(session: Session) -> None:
    ran(session, "open('/tmp/ask.py', 'w').write('from composio_helper import *\\nprint(invoke_llm(\"say:hi\"))')")
    result = session.bash("python3 /tmp/ask.py && cd / && python3 -c 'import workbench_helper as w; print(w.__all__)'")
    assert result.stdout.startswith("('hi', '')\n")
    assert "upload_local_file" in result.stdout
    assert (result.receipt.helpers.calls, result.receipt.helpers.prompt_tokens) == (1, 1)


def test_memories_of_every_origin_ask_on(session: Session, server: Server) -> None:
    ran(session, f"{FIFTY}kept = 1")
    lost = session.run("import os; os._exit(1)")
    assert not lost.ok
    assert value(session, "kept, fifty('restored')") == (1, [])
    ran(session, "kept = 2")
    session.undo()
    assert value(session, "kept, fifty('undone')") == (1, [])
    asyncio.run(freeze_all(server))
    assert session.describe().state == "frozen"
    assert value(session, "kept, fifty('thawed')") == (1, [])
    session.restart()
    assert value(session, f"{FIFTY}'kept' in globals(), fifty('restarted')") == (False, [])


async def freeze_all(server: Server) -> None:
    """As the caretaker does it."""
    async with await connect_or_start(server.settings, os.environ) as host, asyncio.timeout(WAIT_S):
        for one in (await host.ask(wire.ListSandboxes(), wire.SandboxList)).sandboxes:
            while not (await host.ask(wire.FreezeSandbox(sandbox=one.sandbox), wire.FreezeReport)).frozen:
                await asyncio.sleep(0.02)


def test_a_session_and_its_branch_ask_at_once_and_no_answer_goes_astray(session: Session, bench: Workbench) -> None:
    ran(session, FIFTY)
    branch = session.branch()
    with ThreadPoolExecutor(2) as both:
        ours = both.submit(ran, session, "fifty('ours')")
        theirs = both.submit(ran, branch, "fifty('theirs')")
        for result in (ours.result(), theirs.result()):
            assert result.results == "[]"
            assert (result.receipt.helpers.calls, result.receipt.helpers.failed) == (50, 0)
    for one in (session, branch):
        written = [entry for entry in bench.audit(session=one.id) if entry.action == "helper.invoke_llm"]
        assert len(written) == 50
    branch.delete()
