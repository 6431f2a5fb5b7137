"""Services and servers that fail: each failure is an error for the code that asked, within bounds, and it goes on."""

from __future__ import annotations

import ast
import time
from collections.abc import Iterator

import pytest
from tests.helpers.serving import LLM_TIMEOUT_S, RAW, helped, ran, rss_anon, value
from tests.host.support import eventually
from tests.restart.server import Server
from tests.services.running import Running

from workbench import Session

pytestmark = pytest.mark.timeout(240)

MIB = 2**20
SERVER_GROWTH = 64 * MIB
# On a machine that others use as well.
SLACK_S = 15.0
# All attempts of a search together, as services/opening.py has it.
SEARCH_S = 40.0
TIMED = """\
import ast
import time
def timed(helper, *arguments):
    began = time.monotonic()
    result, error = helper(*arguments)
    return result, error, time.monotonic() - began
"""


@pytest.mark.parametrize("helper", ["invoke_llm", "web_search"])
@pytest.mark.parametrize(("fault", "least_s"), [("limited-once", 1.0), ("failed-once", 0.0), ("cut-once", 0.0)])
def test_what_passes_is_waited_for(
    session: Session, models: Running, searches: Running, helper: str, fault: str, least_s: float
) -> None:
    text, error, seconds = value(session, f"{TIMED}\ntimed({helper}, 'fault:{fault}')")
    assert (bool(text), error) == (True, "")
    assert least_s <= seconds < LLM_TIMEOUT_S + SLACK_S
    assert len(models.seen() + searches.seen()) == 2


@pytest.mark.parametrize("helper", ["invoke_llm", "web_search"])
def test_what_does_not_pass_is_an_error_within_bounds_and_the_cell_goes_on(
    session: Session, server: Server, helper: str
) -> None:
    faults = ["failed", "limited", "cut", "drop", "large", "large-undeclared", "large-refusal", "packed", "not-json",
              "wrong-shape", "refused", "redirect", "limited-for-hours"]  # fmt: skip
    ran(session, f"{TIMED}\n{helper}('say:warm')")
    before = rss_anon(server.pid)
    result = ran(
        session,
        f"""\
from concurrent.futures import ThreadPoolExecutor
faults = {faults!r}
with ThreadPoolExecutor(len(faults)) as pool:
    told = dict(zip(faults, pool.map(lambda fault: timed({helper}, f'fault:{{fault}}'), faults)))
most_s = {LLM_TIMEOUT_S + SLACK_S}
wrong = {{fault: one for fault, one in told.items() if one[0] != '' or not one[1] or one[2] > most_s}}
print(wrong, {helper}('say:and on')[1] == '')
""",
    )
    assert result.stdout == "{} True\n"
    assert (result.receipt.helpers.calls, result.receipt.helpers.failed) == (len(faults) + 1, len(faults))
    assert rss_anon(server.pid) - before < SERVER_GROWTH
    words = value(session, "told['large'][1], told['redirect'][1], told['limited-for-hours'][1]")
    assert "bytes and was not read to its end" in words[0]
    assert "redirects are not followed" in words[1]
    assert "it asks to wait 7,200 s" in words[2]


@pytest.mark.long
def test_services_that_hang_or_drip_are_given_up_while_the_session_goes_on(session: Session, server: Server) -> None:
    ran(session, TIMED)
    cell = session.start(
        """\
from concurrent.futures import ThreadPoolExecutor
asked = [(helper, f'fault:{fault}') for helper in (invoke_llm, web_search) for fault in ('hang', 'drip')]
with ThreadPoolExecutor(4) as pool: told = list(pool.map(lambda one: timed(*one), asked))
[(text, 'gave no whole answer' in error, round(seconds, 1)) for text, error, seconds in told]
""",
        limit_s=200,
    )
    asked = session.bash("python3 -c 'import workbench_helper as w; print(w.invoke_llm(\"say:beside it\"))'")
    assert asked.stdout == "('beside it', '')\n"
    result = cell.wait()
    assert result.ok
    told = ast.literal_eval(result.results)
    assert [(text, words) for text, words, _ in told] == [("", True)] * 4
    assert all(seconds < LLM_TIMEOUT_S + SLACK_S for _, _, seconds in told[:2])
    assert all(seconds < SEARCH_S + SLACK_S for _, _, seconds in told[2:])


def test_a_call_beyond_eight_mebibytes_is_refused_with_what_to_do(session: Session) -> None:
    tool, proxy, search, raw = value(
        session,
        f"""{RAW}
large = 'x' * (8 * 2**20)
[run_composio_tool('A_TOOL', {{'a': large}})[1], proxy_execute('POST', '/', 'github', body=large)[1],
 web_search(large)[1], ask('invoke_llm', query=large)['error']]
""",
    )
    for words in (tool, proxy):
        assert "one call can carry 8,388,608: put large data into a file" in words
    assert "at most 200,000 can be asked" in search
    assert "at most 8388608 bytes" in raw


@pytest.fixture(scope="module")
def strict(_models: Running, _searches: Running) -> Iterator[Server]:
    """A server that lets little through, and waits long for its model."""
    with helped(_models, _searches, llm_timeout_s=60, calls_per_minute=60, calls_per_cell=10) as server:
        yield server


@pytest.fixture
def bounded(strict: Server) -> Iterator[Session]:
    """A session in it."""
    with strict.bench() as bench:
        made = bench.create("tester")
        yield made
        made.delete()


def test_calls_are_counted_by_cell_and_by_minute(bounded: Session) -> None:
    codes = value(bounded, f"{RAW}\n[ask('invoke_llm', query='say:x')['code'] for _ in range(12)]")
    assert codes == [""] * 10 + ["quota_exceeded"] * 2
    many = value(bounded, "[ask('file_key', path='none')['code'] for _ in range(80)]")
    assert many[:10] == ["not_found"] * 10
    assert set(many[10:]) == {"quota_exceeded", "rate_limited"}
    # A helper waits, and has its answer.
    assert value(bounded, "invoke_llm('say:after a moment')") == ("after a moment", "")


def test_a_server_that_is_killed_in_the_middle_of_a_call_is_told_and_the_next_one_serves_on(
    strict: Server, bounded: Session, models: Running
) -> None:
    ran(bounded, f"{TIMED}\nkept = 1")
    cell = bounded.start("timed(invoke_llm, 'fault:hang')")
    eventually(models.seen, "the model is asked")
    killed = time.monotonic()
    strict.kill()
    strict.start()
    result = cell.wait()
    assert result.ok
    text, error, _ = ast.literal_eval(result.results)
    assert text == ""
    assert "whether it was carried out is not known, and it was not done again" in error
    assert time.monotonic() - killed < 2 * SLACK_S
    assert len(models.seen()) == 1
    assert (result.receipt.helpers.calls, result.receipt.helpers.failed) == (1, 1)
    assert value(bounded, "kept, invoke_llm('say:here again')") == (1, ("here again", ""))


def test_a_call_made_while_no_server_runs_waits_for_the_next_one(
    strict: Server, bounded: Session, models: Running
) -> None:
    ran(bounded, TIMED)
    cell = bounded.start(
        "import os, time\nwhile not os.path.exists('/mnt/files/go'): time.sleep(0.02)\ntimed(invoke_llm, 'say:late')"
    )
    strict.kill()
    (strict.settings.data_dir / "files" / bounded.id / "go").touch()
    strict.start()
    result = cell.wait()
    assert ast.literal_eval(result.results)[:2] == ("late", "")
    assert len(models.seen()) == 1
