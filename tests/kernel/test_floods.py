"""Everything that a kernel says arrives: floods, slow readers, sudden deaths, threads between cells."""

from __future__ import annotations

import asyncio
import hashlib

import pytest
from tests.kernel.place import PATIENCE_S, Live, Place, pieces, text

from workbench.contracts.kernel import Began, Finished, KernelEvent, KernelGone
from workbench.model.execution import Cell, PieceKind
from workbench.model.ids import new_cell_id

pytestmark = pytest.mark.asyncio(loop_scope="module")

_DISPLAYS = 20_000
# For a reader that takes its time.
_SLOWLY = 3000
# Fifty megabytes in which every line says where it stands.
_LINES = "for i in range({}):\n    print(f'{{i:09}}' + 'x' * 490)\n"
_MOST_LINES = 100_000


def _lines(many: int) -> str:
    return "".join(f"{number:09}{'x' * 490}\n" for number in range(many))


_LATE_THREAD = """\
import threading
go, gone = threading.Event(), threading.Event()
def late():
    go.wait()
    print('between cells')
    gone.set()
threading.Thread(target=late).start()
threading.Timer(0.05, go.set).start()
"""
_DEATHS = {
    "os._exit": ("import os\nos._exit(3)", 3, None),
    "SIGKILL": ("import os, signal\nos.kill(os.getpid(), signal.SIGKILL)", None, 9),
    "a crash of C code": ("import ctypes\nctypes.string_at(0)", None, 11),
    "abort": ("import os\nos.abort()", None, 6),
}


async def test_20_000_displays_arrive_in_their_order(live: Live) -> None:
    events = await live.run(f"from IPython.display import display\nfor i in range({_DISPLAYS}):\n    display(i)")
    shown = [piece.display.data["text/plain"] for piece in pieces(events, PieceKind.DISPLAY) if piece.display]
    assert shown == [str(number) for number in range(_DISPLAYS)]
    assert isinstance(events[-1], Finished)
    assert not events[-1].output_incomplete


async def test_50_mb_of_text_arrive_byte_for_byte(live: Live) -> None:
    events = await live.run(_LINES.format(_MOST_LINES))
    assert _digest(text(events)) == _digest(_lines(_MOST_LINES))


async def test_50_mb_in_one_print_arrive(live: Live) -> None:
    events = await live.run("print('é' * 25_000_000)")
    assert _digest(text(events)) == _digest("é" * 25_000_000 + "\n")


async def test_50_mb_of_a_child_arrive(live: Live) -> None:
    events = await live.run("!head -c 50000000 /dev/zero | tr '\\0' y")
    assert _digest(text(events)) == _digest("y" * 50_000_000)


async def test_what_threads_and_children_print_at_once_is_all_there(live: Live) -> None:
    code = (
        "import threading, subprocess, sys\n"
        "def many(name):\n    for i in range(2000): print(f'{name}{i:05}')\n"
        "threads = [threading.Thread(target=many, args=(name,)) for name in 'abcd']\n"
        "child = subprocess.Popen(['sh', '-c', 'i=0; while [ $i -lt 2000 ]; do echo e$i; i=$((i+1)); done'])\n"
        "for t in threads: t.start()\nfor t in threads: t.join()\n_ = child.wait()"
    )
    printed = text(await live.run(code))
    for name in "abcd":
        places = [printed.index(f"{name}{number:05}") for number in range(2000)]
        assert places == sorted(places)
    assert all(f"e{number}\n" in printed for number in range(2000))


async def test_a_slow_reader_loses_nothing(live: Live) -> None:
    code = f"from IPython.display import display\nfor i in range({_SLOWLY}):\n    display(i)\n    print(i)"
    seen: list[KernelEvent] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in live.kernel.execute(Cell(id=new_cell_id(), code=code)):
            seen.append(event)
            if len(seen) % 1000 == 0:
                # What is tested is that time passes while nobody reads.
                await asyncio.sleep(0.1)
    assert text(seen) == "".join(f"{number}\n" for number in range(_SLOWLY))
    assert len(pieces(seen, PieceKind.DISPLAY)) == _SLOWLY


async def test_a_reader_that_falls_far_behind_makes_the_kernel_wait(live: Live) -> None:
    """200 MB, of which nobody may hold more than a part."""
    code = "for i in range(800):\n    print(f'{i:05}' + 'z' * 250_000)"
    total, first = 0, True
    async with asyncio.timeout(PATIENCE_S):
        async for event in live.kernel.execute(Cell(id=new_cell_id(), code=code)):
            if first:
                first = False
                await asyncio.sleep(0.5)
            total += len(text([event]))
    assert total == 800 * 250_006


async def test_what_overtakes_the_message_that_the_cell_began_is_not_lost(place: Place) -> None:
    live = await place.live()
    await live.run("get_ipython().kernel._publish_execute_input = lambda *_, **__: None")
    events = await live.run("print('z' * 3_000_000)")
    assert isinstance(events[0], Began)
    assert text(events) == "z" * 3_000_000 + "\n"


async def test_what_was_printed_is_given_back(live: Live) -> None:
    """Ten times what the tier has room for would end the kernel soon; twice 200 MB would show."""
    code = "for i in range(400):\n    print('z' * 250_000)"
    await live.run(code)
    before = (await live.sandbox.usage()).memory_bytes
    await live.run(code)
    assert (await live.sandbox.usage()).memory_bytes - before < 40_000_000


@pytest.mark.parametrize("how", _DEATHS)
async def test_what_was_printed_before_a_sudden_death_is_all_there(place: Place, how: str) -> None:
    ending, code, signal_ = _DEATHS[how]
    live = await place.live()
    said = "import sys\nfor i in range(20_000):\n    print('line', i)\nprint('to stderr', file=sys.stderr)\n"
    said += "_ = __import__('os').write(1, b'by descriptor\\n')\nprint('last words', end='')\n"
    events, gone = await _until_gone(live, said + ending)
    assert (gone.exit.code, gone.exit.signal) == (code, signal_)
    assert isinstance(events[0], Began)
    lines = "".join(f"line {number}\n" for number in range(20_000))
    assert text(events) == f"{lines}by descriptor\nlast words"
    assert "to stderr" in text(events, PieceKind.STDERR)


async def test_a_flood_that_ends_in_death_is_told_up_to_its_end(place: Place) -> None:
    live = await place.live()
    events, _ = await _until_gone(live, _LINES.format(20_000) + "import os\nos._exit(0)")
    assert _digest(text(events)) == _digest(_lines(20_000))


async def test_what_a_child_wrote_before_the_kernel_died_is_there(place: Place) -> None:
    live = await place.live()
    events, _ = await _until_gone(live, "import os\nos.system('seq 5000')\nos._exit(1)")
    assert text(events) == "".join(f"{number}\n" for number in range(1, 5001))


async def test_a_cell_whose_first_instruction_kills_has_begun(place: Place) -> None:
    """Else it would be taken for one that never began, and run again."""
    live = await place.live()
    events, _ = await _until_gone(live, "__import__('os')._exit(1)")
    assert isinstance(events[0], Began)


async def test_what_python_and_its_children_print_is_in_order(live: Live) -> None:
    others = "os.system(f'echo shell {n}')\n    os.write(1, b'descriptor\\n')"
    events = await live.run(f"import os\nfor n in range(50):\n    print('python', n)\n    {others}")
    expected = "".join(f"python {number}\nshell {number}\ndescriptor\n" for number in range(50))
    assert text(events) == expected


async def test_a_cell_that_waits_for_its_output_to_leave_can_be_interrupted(live: Live) -> None:
    cell = Cell(id=new_cell_id(), code="while True: print('x' * 10_000)")
    events: list[KernelEvent] = []
    async with asyncio.timeout(PATIENCE_S):
        async for event in live.kernel.execute(cell):
            events.append(event)
            if len(events) == 50:
                await live.kernel.interrupt()
    assert isinstance(events[-1], Finished)
    assert not events[-1].ok


async def test_what_a_thread_prints_between_cells_comes_with_the_next(live: Live) -> None:
    await live.run(_LATE_THREAD)
    events = await live.run("gone.wait(20)\nprint('in the cell')")
    assert "between cells\n" in text(events)
    assert text(events).index("between cells") < text(events).index("in the cell")


async def test_what_a_child_in_the_background_prints_later_comes_with_the_cell_of_then(live: Live) -> None:
    await live.run("import subprocess as s\nchild = s.Popen(['sh', '-c', 'read x; echo late'], stdin=s.PIPE)")
    assert "late" not in text(await live.run("1"))
    assert text(await live.run("_ = child.communicate(b'\\n')")) == "late\n"


async def _until_gone(live: Live, code: str) -> tuple[list[KernelEvent], KernelGone]:
    events: list[KernelEvent] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            async for event in live.kernel.execute(Cell(id=new_cell_id(), code=code)):
                events.append(event)  # noqa: PERF401  what came before the end counts
    except KernelGone as gone:
        return events, gone
    raise AssertionError(f"it did not die, and said {events}")


def _digest(said: str) -> tuple[int, str]:
    """Short enough to be shown when it differs."""
    return len(said), hashlib.sha256(said.encode()).hexdigest()
