"""Kernels whose code speaks to the host in the kernel's place: they may spoil their own session, and nothing else."""

from __future__ import annotations

import pytest
from tests.host.cells import make_kernel, run
from tests.host.support import host_pids, read

from workbench.host_client.connection import HostConnection
from workbench.model.execution import MemoryState, Outcome
from workbench.settings import Settings

# Sends whatever it likes on the channel that the host reads output from.
SEND = """\
import os, threading
thread = get_ipython().kernel.iopub_thread
def send(*frames):
    done = threading.Event()
    thread.schedule(lambda: (thread.socket.send_multipart(list(frames)), done.set()))
    done.wait(20)
"""
MIB = 2**20


def peak_bytes(pid: int) -> int:
    lines = [line for line in read(f"/proc/{pid}/status").splitlines() if line.startswith(b"VmHWM:")]
    return int(lines[0].split()[1]) * 1024


async def test_large_messages_do_not_pile_up_in_the_host(
    shared_host: HostConnection, shared_settings: Settings
) -> None:
    sandbox = await make_kernel(shared_host)
    (pid, *_) = host_pids(shared_settings)
    before = peak_bytes(pid)
    await run(shared_host, sandbox, SEND)
    flood = "for _ in range(60): send(b'x', b'<IDS|MSG>', b'', b'{}', b'{}', b'{}', b'y' * (40 * 2**20))"
    await run(shared_host, sandbox, flood)
    assert peak_bytes(pid) - before < 17 * 64 * MIB
    assert (await run(shared_host, sandbox, "1 + 1")).results.text == "2"


async def test_a_message_over_the_bound_costs_its_sender_and_nobody_else(shared_host: HostConnection) -> None:
    hostile, other = await make_kernel(shared_host), await make_kernel(shared_host)
    await run(shared_host, hostile, SEND)
    await run(shared_host, hostile, "send(b'x' * (100 * 2**20))")
    assert (await run(shared_host, other, "1 + 1")).results.text == "2"
    assert (await run(shared_host, hostile, "1 + 1")).outcome is Outcome.OK


async def test_a_type_as_long_as_a_message_costs_its_display_and_no_connection(shared_host: HostConnection) -> None:
    hostile, other = await make_kernel(shared_host), await make_kernel(shared_host)
    shown = await run(shared_host, hostile, "display({'x' * 34_000_000: 'y' * 600_000}, raw=True)")
    assert shown.outcome is Outcome.OK
    (display,) = shown.displays
    assert "formats left out" in display.data["text/plain"]
    assert (await run(shared_host, other, "1 + 1")).results.text == "2"


@pytest.mark.parametrize(
    "frames",
    [
        "b''",
        "b'no delimiter'",
        "b'<IDS|MSG>'",
        "b'<IDS|MSG>', b'', b'{', b'{', b'{', b'{'",
        "b'<IDS|MSG>', b'', b'[1]', b'null', b'3', b'\\xff\\xfe'",
        'b"<IDS|MSG>", b"", b\'{"msg_type": "stream"}\', b"{}", b"{}", b\'{"name": 7, "text": []}\'',
        'b"<IDS|MSG>", b"", b\'{"msg_type": "display_data"}\', b"{}", b"{}", b\'{"data": {"a": {"b": 1}}}\'',
        'b"<IDS|MSG>", b"", b\'{"msg_type": "error"}\', b"{}", b"{}", b\'{"ename": "\\\\ud800"}\'',
        'b"<IDS|MSG>", b"", b\'{"msg_type": "stream"}\', b"{}", b"{}", b"[" * 100000',
    ],
)
async def test_what_is_no_message_is_ignored(shared_host: HostConnection, frames: str) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, SEND)
    result = await run(shared_host, sandbox, f"send({frames})\nprint('after')")
    assert (result.outcome, result.stdout.text) == (Outcome.OK, "after\n")


async def test_a_kernel_that_claims_absurd_things_about_itself_is_cut_short(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    claim = (
        "kernel = get_ipython().kernel\n"
        "claim = {'added': ['n' * 10**6] * 1000, 'more': 2**80, 'cwd': '/' * 10**6}\n"
        "type(kernel).finish_metadata = lambda self, parent, metadata, reply: {'workbench': claim}\n"
    )
    await run(shared_host, sandbox, claim)
    receipt = (await run(shared_host, sandbox, "1")).receipt
    assert len(receipt.added) <= 200
    assert all(len(name) <= 200 for name in receipt.added)
    assert len(receipt.working_folder) <= 4096


async def test_shared_memory_that_was_cut_off_or_filled_with_lies_costs_no_host(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    fill = "memory = get_ipython().kernel.memory\nmemory[:] = b'\\xff' * len(memory)"
    lies = f"print('begun', flush=True)\n{fill}\nimport os; os._exit(1)"
    assert (await run(shared_host, sandbox, lies)).outcome is Outcome.LOST
    assert (await run(shared_host, sandbox, "1 + 1")).results.text == "2"


OFFERS = """
import os, socket, time
from workbench_guest import entering
from workbench_guest.messages import Offer, encode
line = socket.socket(fileno=os.dup(entering.line().fileno()))

def offer(name, pid, *descriptors):
    socket.send_fds(line, [encode(Offer(snapshot=name, pid=pid))], descriptors)

def orphan():
    reading, writing = os.pipe()
    if os.fork() == 0:
        pid = os.fork()
        if pid == 0:
            os.setsid()
            time.sleep(600)
        os.write(writing, str(pid).encode())
        os._exit(0)
    os.wait()
    return int(os.read(reading, 20))

pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
"""


@pytest.mark.parametrize(
    "forged",
    [
        "line.send(b'no message')",
        'line.send(b\'{"kind": "Exited", "process": "k-main-1"}\')',
        "offer('x', 1, pair[0].fileno())",
        "offer('x', os.getpid(), pair[0].fileno())",
        "offer('x', -1, pair[0].fileno()); offer('x', 2**40, pair[0].fileno()); offer('x', 2**90, pair[0].fileno())",
        "offer('x', orphan())",
        "offer('x', orphan(), pair[0].fileno(), pair[1].fileno())",
        "offer('x', orphan(), os.open('/dev/null', os.O_RDONLY))",
        "offer('x', orphan(), socket.socket().fileno())",
        "offer('x' * 50000, orphan(), pair[0].fileno())",
        "mine = orphan(); offer('\u00e9' * 20000, mine, pair[0].fileno()); os.kill(mine, 9)",
        "socket.send_fds(line, [b'no message'], [pair[0].fileno()] * 16)",
        "mine = orphan(); [offer(f'{n}', mine, pair[0].fileno()) for n in range(100)]",
        "[offer(f'{n}', orphan(), pair[0].fileno()) for n in range(100)]",
        "line.close(); entering.line().close()",
    ],
)
async def test_forged_offers_of_snapshots_harm_nobody(shared_host: HostConnection, forged: str) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, OFFERS)
    await run(shared_host, sandbox, f"kept = 1\n{forged}")
    result = await run(shared_host, sandbox, "kept + 1")
    assert (result.results.text, result.receipt.state) == ("2", MemoryState.INTACT)
    # Whatever pid 1 thinks of this kernel now: what the receipt says is there is what it is restored from.
    lost = await run(shared_host, sandbox, "import os; os._exit(1)")
    assert lost.receipt.state is (MemoryState.RESTORED if lost.receipt.snapshot.kept else MemoryState.LOST)
    assert lost.receipt.snapshot.current or "lost too" in lost.explanation
    assert (await run(shared_host, sandbox, "1 + 1")).results.text == "2"


@pytest.mark.long
async def test_a_stranger_in_the_place_of_a_snapshot_is_given_up_in_bounded_time(shared_host: HostConnection) -> None:
    sandbox = await make_kernel(shared_host)
    await run(shared_host, sandbox, OFFERS)
    # Whatever is asked for, a process that never answers is offered.
    stand_in = (
        "from workbench_guest.kernel import copying\n"
        "def copy(self, kernel, wish):\n"
        "    offer(wish.snapshot, orphan(), pair[0].fileno())\n"
        "    wish.answer({'status': 'ok', 'cost_ms': 1})\n"
        "copying.Copier.copy = copy"
    )
    await run(shared_host, sandbox, stand_in)
    await run(shared_host, sandbox, "1")
    lost = await run(shared_host, sandbox, "import os; os._exit(1)", limit_s=30)
    assert lost.outcome is Outcome.LOST
    assert lost.receipt.state is MemoryState.LOST
