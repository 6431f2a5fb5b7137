"""No output is lost: not in a flood, not with a slow reader, not when the process dies under it."""

from __future__ import annotations

import asyncio

import pytest
from tests.kernel.place import PATIENCE_S, Live, Place, pieces, text

from workbench.contracts.kernel import Began, Finished, KernelEvent, KernelGone
from workbench.model.execution import Cell, PieceKind
from workbench.model.ids import new_cell_id

pytestmark = [pytest.mark.asyncio(loop_scope="module"), pytest.mark.isolation]


async def until_it_died(live: Live, code: str) -> list[KernelEvent]:
    """What a cell said that its kernel did not survive."""
    events: list[KernelEvent] = []
    try:
        async with asyncio.timeout(PATIENCE_S):
            async for event in live.kernel.execute(Cell(id=new_cell_id(), code=code)):
                events.append(event)  # noqa: PERF401  kept also if the next one never comes
    except KernelGone:
        return events
    raise AssertionError("the kernel lives")


async def test_every_display_of_a_flood_arrives_in_order(place: Place) -> None:
    live = await place.live()
    events = await live.run("from IPython.display import display\nfor n in range(20_000): display(n)")
    shown = [piece.display.data["text/plain"] for piece in pieces(events, PieceKind.DISPLAY) if piece.display]
    assert shown == [str(number) for number in range(20_000)]


async def test_fifty_megabytes_of_text_arrive_byte_for_byte(place: Place) -> None:
    live = await place.live()
    events = await live.run("text = '%049d\\n' * 1_000_000 % tuple(range(1_000_000))\nprint(text, end='')")
    assert text(events) == "%049d\n" * 1_000_000 % tuple(range(1_000_000))


async def test_a_reader_that_is_slow_at_first_loses_nothing(place: Place) -> None:
    live = await place.live()
    said = ""
    cell = Cell(
        id=new_cell_id(), code="for n in range(200_000): print(n)\nfrom IPython.display import display\ndisplay(7)"
    )
    async with asyncio.timeout(PATIENCE_S):
        read = 0
        async for event in live.kernel.execute(cell):
            # The kernel goes on meanwhile: what it prints waits on its way, and then the kernel itself.
            await asyncio.sleep(0.1 if read < 10 else 0)
            read += 1
            said += text([event])
            last = event
    assert said == "".join(f"{number}\n" for number in range(200_000))
    assert isinstance(last, Finished)
    assert not last.output_incomplete


@pytest.mark.parametrize(
    "death",
    ["os._exit(1)", "os.kill(os.getpid(), 9)", "__import__('ctypes').string_at(0)", "os.abort()"],
)
async def test_what_was_printed_before_a_sudden_death_is_there(place: Place, death: str) -> None:
    live = await place.live()
    code = f"import os, sys\nfor n in range(20_000): print(n)\nprint('to stderr', file=sys.stderr)\n{death}"
    events = await until_it_died(live, code)
    assert isinstance(events[0], Began)
    assert text(events) == "".join(f"{number}\n" for number in range(20_000))
    assert text(events, PieceKind.STDERR).startswith("to stderr\n")


async def test_what_a_child_wrote_before_the_kernel_died_is_there(place: Place) -> None:
    live = await place.live()
    events = await until_it_died(live, "import os\nos.system('seq 5000')\nos._exit(1)")
    assert text(events) == "".join(f"{number}\n" for number in range(1, 5001))


async def test_a_cell_whose_first_instruction_kills_has_begun(place: Place) -> None:
    """Else it would be taken for one that never began, and run again."""
    live = await place.live()
    events = await until_it_died(live, "__import__('os')._exit(1)")
    assert isinstance(events[0], Began)


async def test_what_is_printed_between_two_cells_comes_with_the_next(place: Place) -> None:
    live = await place.live()
    talk = "def talk():\n    go.wait()\n    print('between')\n    done.set()"
    go = "go, done = threading.Event(), threading.Event()\nthreading.Timer(0.3, go.set).start()"
    await live.run(f"import threading\n{talk}\n{go}\nthreading.Thread(target=talk).start()")
    # Whether anything is printed between two cells is what this is about: nothing of ours tells.
    await asyncio.sleep(1.0)
    events = await live.run("done.wait(10); print('after')")
    assert text(events) == "between\nafter\n"


async def test_what_python_and_its_children_print_is_in_order(place: Place) -> None:
    live = await place.live()
    others = "os.system(f'echo shell {n}')\n    os.write(1, b'descriptor\\n')"
    events = await live.run(f"import os\nfor n in range(50):\n    print('python', n)\n    {others}")
    expected = "".join(f"python {number}\nshell {number}\ndescriptor\n" for number in range(50))
    assert text(events) == expected


async def test_a_cell_that_waits_for_its_output_to_leave_can_be_interrupted(place: Place) -> None:
    live = await place.live()
    cell = Cell(id=new_cell_id(), code="while True: print('x' * 10_000)")
    read = 0
    async with asyncio.timeout(PATIENCE_S):
        async for event in live.kernel.execute(cell):
            read += 1
            if read == 50:
                await live.kernel.interrupt()
            last = event
    assert isinstance(last, Finished)
    assert not last.ok
