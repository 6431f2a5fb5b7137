"""What the engine contract says about entries: code that runs as a script would, in an interpreter already there."""

from __future__ import annotations

import os

import pytest

from workbench.contracts.engine import Sandbox
from workbench.testing.driving import code, finish, run

_CHAINED = """\
def inner():
    raise KeyError("first")
def outer():
    try:
        inner()
    except KeyError as problem:
        raise ValueError("second") from problem
outer()
"""
_LEAVES_WORK_BEHIND = """\
import atexit, threading, time
atexit.register(lambda: print("handler"))
main_is_over = threading.Event()
def work():
    main_is_over.wait()
    time.sleep(0.1)
    print("thread")
threading.Thread(target=work).start()
print("main")
main_is_over.set()
"""
_BREAKS_ITS_STREAMS = """\
import sys
sys.stdout, sys.stderr, sys.excepthook = None, 5, "nothing"
raise SystemExit(4)
"""


_WRITES_TO_WHAT_IT_HAS = """\
import contextlib, os, stat
pipes = []
for number in range(3, 100):
    with contextlib.suppress(OSError):
        if stat.S_ISFIFO(os.fstat(number).st_mode):
            pipes.append(number)
for place, number in enumerate(pipes):
    os.write(number, str(place).encode())
"""


class EntriesContract:
    """Part of EngineContract, which has the fixtures."""

    async def test_an_entry_runs_code_as_main(self, sandbox: Sandbox) -> None:
        """With an empty line of its own, as a script."""
        done = await run(sandbox, code("import sys\nprint(__name__, 6 * 7, len(sys.argv))"))
        assert (done.stdout, done.stderr, done.exit.code) == (b"__main__ 42 1\n", b"", 0)

    async def test_a_traceback_shows_only_the_lines_of_the_agent(self, sandbox: Sandbox) -> None:
        """Every frame is of the code it gave, with the text of the line; nothing of ours."""
        done = await run(sandbox, code(_CHAINED))
        text = done.stderr.decode()
        assert done.exit.code == 1
        files = {line.split('"')[1] for line in text.splitlines() if line.lstrip().startswith("File ")}
        assert files == {"<code>"}
        assert 'raise ValueError("second") from problem' in text
        assert text.endswith("ValueError: second\n")
        assert "workbench" not in text

    async def test_a_syntax_error_points_at_the_code(self, sandbox: Sandbox) -> None:
        """And at nothing else."""
        done = await run(sandbox, code("x = (\n"))
        assert done.exit.code == 1
        assert b'File "<code>", line 1' in done.stderr
        assert b"workbench" not in done.stderr

    @pytest.mark.parametrize(
        ("argument", "expected", "printed"),
        [("", 0, b""), ("0", 0, b""), ("3", 3, b""), ("True", 1, b""), ("'bye'", 1, b"bye\n"), ("257", 1, b"")],
    )
    async def test_the_exit_code_is_that_of_sys_exit(
        self, sandbox: Sandbox, argument: str, expected: int, printed: bytes
    ) -> None:
        """As the interpreter has it."""
        done = await run(sandbox, code(f"import sys\nsys.exit({argument})"))
        assert (done.exit.code, done.stderr) == (expected, printed)

    async def test_threads_and_exit_handlers_come_to_their_end(self, sandbox: Sandbox) -> None:
        """The last line of the code is not the end of a script."""
        assert (await run(sandbox, code(_LEAVES_WORK_BEHIND))).stdout == b"main\nthread\nhandler\n"

    async def test_code_that_breaks_its_own_streams_still_ends_with_its_code(self, sandbox: Sandbox) -> None:
        """A forked interpreter must never return to where it was forked; 120 is an executed one's word for it."""
        assert (await run(sandbox, code(_BREAKS_ITS_STREAMS))).exit.code in (4, 120)

    async def test_large_code_arrives_whole(self, sandbox: Sandbox) -> None:
        """It does not travel as an argument."""
        done = await run(sandbox, code(f"text = {'é' * 3_000_000!r}\nprint(len(text))"))
        assert done.stdout == b"3000000\n"

    async def test_an_entry_gets_the_descriptors_that_are_passed_to_it(self, sandbox: Sandbox) -> None:
        """In order, and nobody else's."""
        pipes = [os.pipe() for _ in range(3)]
        try:
            writers = [writer for _, writer in pipes]
            done = await finish(await sandbox.start(code(_WRITES_TO_WHAT_IT_HAS), writers))
            assert done.exit.code == 0
            assert [os.read(reader, 100) for reader, _ in pipes] == [b"0", b"1", b"2"]
        finally:
            for reader, writer in pipes:
                os.close(reader)
                os.close(writer)

    async def test_siblings_draw_different_random_numbers(self, sandbox: Sandbox) -> None:
        """Forks of one interpreter must not share a seed."""
        drawn = {(await run(sandbox, code("import random\nprint(random.random())"))).stdout for _ in range(3)}
        assert len(drawn) == 3
