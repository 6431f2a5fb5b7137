"""Code in a sandbox that means harm: it speaks for itself alone, hurts itself alone, and the host stays small."""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator

import pytest
from tests.helpers.serving import RAW, ran, rss_anon, value
from tests.host.support import host_pids, read
from tests.restart.server import Server
from tests.services.running import Running

from workbench import Session, Workbench

pytestmark = pytest.mark.timeout(240)

MIB = 2**20
# Beyond what one sandbox may have on its way at once, twice: as it came, and as it goes on.
HOST_GROWTH = 96 * MIB
# On a machine that others use as well; a door that takes all who come makes it seconds.
CALL_SLACK_S, CELL_S = 0.3, 1.0


@pytest.fixture
def other(bench: Workbench) -> Iterator[Session]:
    """Somebody else's."""
    made = bench.create("somebody else")
    yield made
    made.delete()


def host_pid(server: Server) -> int:
    (pid,) = [pid for pid in host_pids(server.settings) if b"host\0run" in read(f"/proc/{pid}/cmdline")]
    return pid


class Watch:
    """The most that a process had in memory meanwhile."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self.before = self.most = rss_anon(pid)
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look)

    def _look(self) -> None:
        while not self._over.wait(0.05):
            self.most = max(self.most, rss_anon(self._pid))

    def __enter__(self) -> Watch:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    @property
    def growth(self) -> int:
        return self.most - self.before


def test_whose_a_call_is_cannot_be_said_by_the_caller(
    bench: Workbench, session: Session, other: Session, server: Server
) -> None:
    ran(other, "open('/mnt/files/private', 'w').write('private')")
    told = value(
        session,
        f"""{RAW}
other = {other.id!r}
forged = {{'session': other, 'session_id': other, 'sandbox': other, 'kernel': other, 'user': 'somebody else',
          'cell': 'c-1', 'project': 'default', 'mount': other}}
open('/mnt/files/mine', 'w').write('mine')
def link(path, **more): return raw({{'operation': 'file_link', 'arguments': {{'path': path, **more}}, **forged}})
[link('mine', **forged)['result']['key'],
 [link(path, **forged)['code'] for path in ('private', f'../{{other}}/private', f'/mnt/files/../{{other}}/private',
  f'{{other}}/private', f'{{other}}/files/private')],
 raw({{'operation': 'invoke_llm', 'arguments': {{'query': 'say:x', **forged}}, **forged}})['result']]
""",
    )
    assert told[0] == f"{session.id}/mine"
    assert set(told[1]) <= {"not_found", "invalid_request", "path_escape"}
    assert told[2] == "x"
    assert [one for one in bench.audit(session=other.id) if one.action.startswith("helper.")] == []
    mine = [one for one in bench.audit(session=session.id) if one.action.startswith("helper.")]
    assert {one.user for one in mine} == {"tester"}


def test_only_the_sandboxs_own_socket_is_in_sight(session: Session, other: Session) -> None:
    looking = """\
import os, socket
with open('/proc/net/unix') as table: names = sorted({line.split()[-1] for line in table if '@' in line})
def reached(path):
    line = socket.socket(socket.AF_UNIX)
    try: line.connect(path)
    except OSError as problem: return type(problem).__name__
    return 'reached'
"""
    ran(other, looking)
    ours, theirs = value(session, f"{looking}\nnames"), value(other, "names")
    assert set(ours) & set(theirs) == {"@workbench-calls"}
    guesses = [f"\0{name[1:]}" for name in theirs if name not in ours] + [f"\0workbench-calls-{other.id}"]
    assert value(session, f"{{reached(path) for path in {guesses!r}}}") == {"ConnectionRefusedError"}


def test_neither_the_host_nor_its_folders_can_be_reached_from_inside(session: Session, server: Server) -> None:
    folder = server.settings.data_dir
    told = value(
        session,
        f"""\
import glob, os
[os.path.exists({str(folder)!r}), glob.glob({str(folder)!r} + '/**/*.sock', recursive=True),
 glob.glob('/run/**/*.sock', recursive=True), glob.glob('/tmp/**/*.sock', recursive=True)]
""",
    )
    assert told == [False, [], [], []]


def test_an_answer_is_read_by_who_asked_and_by_no_sibling(session: Session) -> None:
    told = value(
        session,
        f"""{RAW}
import subprocess, sys
asking = connected()
asking.sendall(framed({{'operation': 'invoke_llm', 'arguments': {{'query': 'say:for the parent'}}}}))
spying = '''
import os
found = []
for pid in filter(str.isdigit, os.listdir('/proc')):
    if int(pid) == os.getpid(): continue
    try: names = os.listdir(f'/proc/{{pid}}/fd')
    except OSError: continue
    for name in names:
        try:
            with open(f'/proc/{{pid}}/fd/{{name}}', 'rb', buffering=0) as file: found.append(os.readlink(file.name))
        except OSError: pass
print([one for one in found if 'socket' in one])
'''
spied = subprocess.run([sys.executable, '-c', spying], capture_output=True, text=True, timeout=60).stdout
[spied, answer(asking)['result']]
""",
    )
    assert told == ["[]\n", "for the parent"]


GARBAGE = f"""{RAW}
import random
def left(line):
    line.settimeout(40)
    try:
        while line.recv(65536): pass
    except OSError: pass
    line.close()
told = []
for head in (0xffffffff, 0x80000000, 2**23 + 1):
    line = connected(); line.sendall(struct.pack('>I', head)); told.append(answer(line)['code']); left(line)
for body in (b'', b'\\0' * 100, b'[' * 1_000_000, b'{{"operation": ' + b'9' * 100_000 + b'}}', b'\\xff' * 1000,
             b'"' + b'x' * 8_000_000 + b'"', b'{{"operation": "web_search", "arguments": ' + b'{{"a":' * 50_000,
             b'{{"operation": "invoke_llm", "arguments": {{"query": "\\\\ud800"}}}}',
             b'{{"operation": "file_link", "arguments": {{"path": "a\\\\u0000b"}}}}',
             b'{{"operation": "invoke_llm", "arguments": {{"query": {{"a": 1}}, "query": NaN}}}}'):
    told.append(raw(body)['code'])
for seed in range(300):
    chance = random.Random(seed)
    line = connected()
    line.sendall(chance.randbytes(chance.randint(0, 64)))
    if seed % 2: line.close()
    else: line.shutdown(socket.SHUT_WR); left(line)
"""


def test_garbage_and_huge_lengths_are_refused_and_leave_nothing(
    session: Session, other: Session, server: Server, models: Running
) -> None:
    ran(other, "1")
    pid = host_pid(server)
    with Watch(pid) as host, Watch(server.pid) as serving:
        codes = value(session, f"{GARBAGE}\nsorted(set(told))")
        assert set(codes) <= {"invalid_request", "path_escape", "not_found", "upstream_refused", "upstream_bad_answer"}
        assert value(session, "invoke_llm('say:still here')") == ("still here", "")
        assert value(other, "invoke_llm('say:not concerned')") == ("not concerned", "")
    assert host.growth < HOST_GROWTH
    assert serving.growth < HOST_GROWTH
    log = server.log.read_text(encoding="utf-8")
    assert "Traceback" not in log
    assert all(one.json()["messages"][-1]["content"].startswith("say:") for one in models.seen())


UNREAD = f"""{RAW}
lines = []
for n in range(120):
    line = connected()
    # What is refused early is not sent to its end.
    try: line.sendall(framed({{'operation': 'invoke_llm', 'arguments': {{'query': 'say:' + '\\U0001f600' * 199_000}}}}))
    except BrokenPipeError: pass
    lines.append(line)
"""


def test_answers_that_nobody_reads_are_bounded(session: Session, other: Session, server: Server) -> None:
    ran(other, "1")
    with Watch(host_pid(server)) as host, Watch(server.pid) as serving:
        ran(session, UNREAD)
        assert value(other, "invoke_llm('say:not concerned')") == ("not concerned", "")
    assert host.growth < HOST_GROWTH
    assert serving.growth < 3 * HOST_GROWTH
    ran(session, "for line in lines: line.close()")
    assert value(session, "invoke_llm('say:after it')") == ("after it", "")


# Each in the background of its session until its file says so.
FLOODS = {
    "connections": """
def flood():
    while not os.path.exists('/tmp/enough'):
        try: line = connected(1); made.append(1); line.close()
        except OSError: pass
""",
    "half-open connections": """
def flood():
    held = []
    while not os.path.exists('/tmp/enough'):
        try: held.append(connected(1)); made.append(1)
        except OSError: pass
        if len(held) > 200: held.pop(0).close()
""",
    "slow bytes": """
def flood():
    held = [connected(1) for _ in range(25)]
    for line in held: line.sendall(struct.pack('>I', 8_000_000))
    while not os.path.exists('/tmp/enough'):
        for n, line in enumerate(held):
            try: line.sendall(b'x')
            except OSError:
                try: held[n] = connected(1)
                except OSError: pass
        made.append(1)
        time.sleep(0.001)
""",
    "calls": """
def flood():
    body = framed({'operation': 'file_key', 'arguments': {'path': 'none'}})
    while not os.path.exists('/tmp/enough'):
        try:
            with connected(1) as line: line.sendall(body); answer(line)
        except (OSError, EOFError): pass
        made.append(1)
""",
    "large calls": """
def flood():
    body = framed(b'x' * 8_000_000)
    while not os.path.exists('/tmp/enough'):
        try:
            with connected(1) as line: line.sendall(body); answer(line)
        except (OSError, EOFError): pass
        made.append(1)
""",
}
START = """
import os
made = []
threads = [threading.Thread(target=flood, daemon=True) for _ in range(8)]
for one in threads: one.start()
time.sleep(0.5)
"""
MEASURED = """
import time
took = []
for n in range(20):
    began = time.perf_counter()
    told = invoke_llm(f'say:{n}')
    assert told == (str(n), ''), told
    took.append(time.perf_counter() - began)
took
"""


@pytest.mark.parametrize("kind", FLOODS)
def test_a_flood_costs_its_own_sandbox_and_others_go_on(
    kind: str, session: Session, other: Session, server: Server, bench: Workbench
) -> None:
    ran(other, MEASURED)
    before = statistics.median(value(other, MEASURED))
    with Watch(host_pid(server)) as host, Watch(server.pid) as serving:
        session.run(f"{RAW}{FLOODS[kind]}{START}")
        began = time.monotonic()
        took = value(other, MEASURED)
        cells = []
        for _ in range(5):
            at = time.monotonic()
            assert value(other, "1 + 1") == 2
            cells.append(time.monotonic() - at)
        flooded = time.monotonic() - began
    session.bash("touch /tmp/enough")
    made = value(session, "[one.join() for one in threads]; len(made)")
    print(
        f"{kind}: calls {before * 1000:.1f} -> {statistics.median(took) * 1000:.1f} ms (max {max(took) * 1000:.0f}), "
        f"cells {statistics.median(cells) * 1000:.0f} ms, {made} in {flooded:.1f} s, "
        f"host +{host.growth / MIB:.0f} MiB, server +{serving.growth / MIB:.0f} MiB, "
    )
    assert made > 5
    assert statistics.median(took) < before + CALL_SLACK_S
    assert statistics.median(cells) < CELL_S
    # Those that were let through, and few of those that were not.
    assert len(bench.audit(session=session.id, limit=1000)) < 64 + 50 * (flooded + 5) + 10
    assert host.growth < HOST_GROWTH
    assert serving.growth < HOST_GROWTH
