"""What arrives for a cell that fails, by kind of failure: the agent's own lines, what Python suggests, none of ours."""

from __future__ import annotations

import asyncio

import pytest
from tests.kernel.place import PATIENCE_S, Live, Place, pieces, result, text

from workbench.contracts.kernel import Finished, KernelEvent
from workbench.model.execution import Cell, CellError, PieceKind
from workbench.model.ids import new_cell_id

pytestmark = pytest.mark.asyncio(loop_scope="module")

# Words of ours that no traceback may have: our package, our folders, our names.
_OURS = ("workbench", "zygote", "_showtraceback", "do_execute")
_FAILURES = {
    "a name": ("total = 1\nprint(totl)", "NameError", "----> 2 print(totl)", "Did you mean: 'total'?"),
    "an attribute": ("'x'.uper()", "AttributeError", "----> 1 'x'.uper()", "Did you mean: 'upper'?"),
    "an import": ("from math import squrt", "ImportError", "----> 1 from math", "cannot import name"),
    "a module": ("import no_such_module", "ModuleNotFoundError", "----> 1", "No module named 'no_such_module'"),
    "syntax": ("def f(:\n    pass", "SyntaxError", "def f(:", "invalid syntax"),
    "a string that does not end": ("x = 'abc", "SyntaxError", "x = 'abc", "unterminated string literal"),
    "an indentation": ("if True:\nx = 1", "IndentationError", "x = 1", "expected an indented block"),
    "a division": ("def half(x):\n    return x / 0\n\nhalf(1)", "ZeroDivisionError", "2     return x / 0", "by zero"),
    "an assertion": ("assert 1 == 2, 'they differ'", "AssertionError", "----> 1 assert", "they differ"),
    "a key": ("{'a': 1}['b']", "KeyError", "----> 1", "'b'"),
    "a class of one's own": ("class Odd(Exception): pass\nraise Odd('so')", "Odd", "----> 2 raise Odd('so')", "so"),
    "an await": ("async def f():\n    raise OSError('in it')\nawait f()", "OSError", "2     raise", "in it"),
    "a command": ("%%bash\nexit 3", "CalledProcessError", "", "returned non-zero exit status 3"),
    "json": ("import json\njson.loads('{')", "JSONDecodeError", "----> 2 json.loads('{')", "property name"),
    "a comprehension": ("[1 / x for x in (1, 0)]", "ZeroDivisionError", "----> 1 [1 / x", "division by zero"),
}  # fmt: skip

_ENDLESS = {
    "a loop": "while True: pass",
    "a sleep": "import time\ntime.sleep(1000)",
    "an await": "import asyncio\nawait asyncio.sleep(1000)",
    "a command": "!sleep 1000",
    "a lock": "import threading\nlock = threading.Lock()\nlock.acquire()\nlock.acquire()",
    "a child": "import subprocess\nsubprocess.run(['sleep', '1000'])",
    "a flood": "while True: print('', end='')",
}


def error_of(events: list[KernelEvent]) -> CellError:
    (piece,) = pieces(events, PieceKind.ERROR)
    assert piece.error is not None
    return piece.error


def finished(events: list[KernelEvent]) -> Finished:
    assert isinstance(events[-1], Finished)
    return events[-1]


@pytest.mark.parametrize("what", _FAILURES)
async def test_a_failure_shows_the_line_the_reason_and_nothing_of_ours(live: Live, what: str) -> None:
    code, name, line, reason = _FAILURES[what]
    events = await live.run(code)
    error = error_of(events)
    assert not finished(events).ok
    assert error.name == name
    assert reason in error.message
    assert line in error.traceback
    assert reason in error.traceback
    assert "\x1b" not in error.traceback + error.message
    assert not [word for word in _OURS if word in error.traceback]


async def test_the_cells_of_a_chain_are_all_shown(live: Live) -> None:
    await live.run("def inner():\n    raise KeyError('deep')")
    code = (
        "def outer():\n    try:\n        inner()\n    except KeyError as e:\n        raise ValueError('outer') from e\n"
    )
    code += "outer()"
    traceback = error_of(await live.run(code)).traceback
    for line in ("raise KeyError('deep')", "inner()", "direct cause", "raise ValueError('outer') from e", "outer()"):
        assert line in traceback
    assert not [word for word in _OURS if word in traceback]


async def test_an_exception_group_names_every_member_and_nothing_of_ours(live: Live) -> None:
    events = await live.run(
        "def both():\n    raise ExceptionGroup('both', [ValueError('one'), TypeError('two')])\nboth()"
    )
    said = error_of(events).traceback
    assert error_of(events).name == "ExceptionGroup"
    assert text(events, PieceKind.STDERR) == ""
    assert "ValueError: one" in said
    assert "TypeError: two" in said
    assert ", line 2, in both\n" in said
    assert "Cell In[" in said
    assert "both()" in said
    assert not [word for word in _OURS if word in said]
    assert not finished(events).ok


async def test_an_exception_in_a_callback_of_ipython_shows_nothing_of_ours(live: Live) -> None:
    events = await live.run(
        "def hook(*_): raise ValueError('in a hook')\nget_ipython().events.register('post_run_cell', hook)"
    )
    said = text(events, PieceKind.STDOUT) + text(events, PieceKind.STDERR)
    await live.run("get_ipython().events.unregister('post_run_cell', hook)")
    assert "in a hook" in said + "".join(p.error.traceback for p in pieces(events, PieceKind.ERROR) if p.error)
    assert not [word for word in _OURS if word in said]


@pytest.mark.parametrize("call", ["input()", "input('name? ')", "import getpass\ngetpass.getpass()"])
async def test_input_is_refused_with_what_to_do_instead(live: Live, call: str) -> None:
    error = error_of(await live.run(call))
    assert error.name == "StdinNotImplementedError"
    assert "nobody can type into this session" in error.message
    assert "Put the value into the code instead" in error.message
    assert call.splitlines()[-1] in error.traceback
    assert not [word for word in _OURS if word in error.traceback]


async def test_reading_standard_input_ends_at_once(live: Live) -> None:
    assert result(await live.run("import sys\nsys.stdin.read()")) == "''"
    assert text(await live.run("!cat; echo over")) == "over\n"


@pytest.mark.parametrize(
    "call", ["exit()", "quit()", "import sys\nsys.exit()", "import sys\nsys.exit(0)", "raise SystemExit"]
)
async def test_leaving_ends_the_cell_and_keeps_the_session(live: Live, call: str) -> None:
    await live.run("before_leaving = 5")
    events = await live.run(f"print('reached')\n{call}\nprint('not reached')")
    assert finished(events).ok
    assert text(events) == "reached\n"
    # Told once, among the corrections.
    assert "the session and its variables live on" in finished(events).mended.corrections.items[0].text
    assert not text(events, PieceKind.STDERR)
    assert not pieces(events, PieceKind.ERROR)
    assert result(await live.run("before_leaving")) == "5"


@pytest.mark.parametrize(
    ("code", "line"),
    [("x = 1\nexit()", 2), ("import sys\ndef leave():\n    sys.exit(0)\n\nleave()", 3), ("\n\nraise SystemExit", 3)],
)
async def test_the_line_that_left_is_told(live: Live, code: str, line: int) -> None:
    (told,) = finished(await live.run(code)).mended.corrections.items
    assert (told.rule, told.line) == ("exit-call", line)


@pytest.mark.parametrize("word", ["exit", "quit"])
async def test_the_word_alone_leaves_as_well(live: Live, word: str) -> None:
    events = await live.run(word)
    assert finished(events).ok
    assert [one.rule for one in finished(events).mended.corrections.items] == ["exit-call"]


@pytest.mark.parametrize(
    ("call", "message"), [("sys.exit(3)", "3"), ("sys.exit('no data')", "no data"), ("exit(2)", "2")]
)
async def test_leaving_with_a_complaint_is_a_failure_that_says_it(live: Live, call: str, message: str) -> None:
    events = await live.run(f"import sys\n{call}")
    assert not finished(events).ok
    assert error_of(events).name == "SystemExit"
    assert error_of(events).message == message


@pytest.mark.parametrize("what", _ENDLESS)
async def test_an_interrupt_ends_the_cell_and_keeps_what_it_printed(live: Live, what: str) -> None:
    events: list[KernelEvent] = []
    cell = Cell(id=new_cell_id(), code=f"print('begun')\n{_ENDLESS[what]}\nprint('went on')")
    async with asyncio.timeout(PATIENCE_S):
        async for event in live.kernel.execute(cell):
            events.append(event)
            # Once: what a second one does is another question.
            if text([event]) and text(events) == text([event]):
                await live.kernel.interrupt()
    assert text(events) == "begun\n"
    assert not finished(events).ok
    assert error_of(events).name in ("KeyboardInterrupt", "CancelledError")
    assert not [word for word in _OURS if word in error_of(events).traceback]
    assert result(await live.run("'alive'")) == "'alive'"


@pytest.mark.parametrize("gap_s", [0, 0.001, 0.003, 0.01])
async def test_several_interrupts_end_the_cell_and_cost_nothing_else(live: Live, gap_s: float) -> None:
    """Whoever is asked twice to stop may be telling of the first time when the second comes.

    As a rule they are told as one. One that comes in the few microseconds before the kernel stops listening can still
    cost the traceback, or make it two.
    """
    for _ in range(5):
        events: list[KernelEvent] = []
        async for event in live.kernel.execute(Cell(id=new_cell_id(), code="print('begun')\nwhile True: pass")):
            events.append(event)
            if text([event]):
                for _again in range(3):
                    await live.kernel.interrupt()
                    await asyncio.sleep(gap_s)
        assert not finished(events).ok
        told = [piece.error.name for piece in pieces(events, PieceKind.ERROR) if piece.error is not None]
        assert set(told) <= {"KeyboardInterrupt"}
        assert len(told) <= 2
        assert result(await live.run("'alive'")) == "'alive'"


async def test_an_interrupt_between_cells_harms_nothing(live: Live) -> None:
    await live.run("spared = 1")
    await live.kernel.interrupt()
    # Signals are not answered: on a busy machine this one may come so late that it meets the next cell.
    seen = [result(await live.run("spared")) for _ in range(2)]
    assert seen[-1] == "1"


async def test_a_cell_that_is_not_stored_leaves_the_count_alone(live: Live) -> None:
    before = finished(await live.run("1")).execution_count
    events = await live.run("'looked at'", store_history=False)
    assert result(events) == "'looked at'"
    assert finished(await live.run("1")).execution_count == before + 1


async def test_half_a_pair_of_characters_is_printed_as_unknown(live: Live) -> None:
    """It would end the conversation if it were sent as it is."""
    events = await live.run("print('before')\nprint('a\\ud800b\\udc80c')\nprint('after')")
    assert text(events) == "before\na\ufffdb\ufffdc\nafter\n"


async def test_strange_bytes_of_children_are_printed_as_unknown(live: Live) -> None:
    assert text(await live.run("!printf 'a\\377b'")) == "a\ufffdb"
    assert text(await live.run("import os\n_ = os.write(1, b'c\\xfed')")) == "c\ufffdd"


async def test_names_are_told_as_they_change(place: Place) -> None:
    live = await place.live()
    assert finished(await live.run("a = 1\nb = [1]\ndef f(): pass")).names.added == ("a", "b", "f")
    assert finished(await live.run("a = 2\nb.append(3)\ndel f")).names.rebound == ("a",)
    assert finished(await live.run("import os\nos.chdir('/tmp')")).working_folder == "/tmp"
    variables = await live.kernel.variables(10)
    assert [variable.name for variable in variables] == ["a", "b", "os"]


async def test_deep_recursion_is_named_and_the_session_lives(live: Live) -> None:
    error = error_of(await live.run("def deeper(n):\n    return deeper(n + 1)\ndeeper(0)"))
    assert error.name == "RecursionError"
    assert "maximum recursion depth exceeded" in error.message
    assert result(await live.run("1")) == "1"
