"""Run one piece of Python as a script would be run: `__main__`, printed output, exit code. Keeps no state."""

from __future__ import annotations

import linecache
import sys
import traceback
import types
from collections.abc import Sequence

from workbench_guest import afterfork

_FILENAME = "<code>"


def main(payload: bytes, _passed: Sequence[int]) -> int:
    """Run the source in `payload`; 0, the code of `sys.exit`, or 1 with a traceback of the agent's lines only."""
    afterfork.refresh()
    module = types.ModuleType("__main__")
    sys.modules["__main__"] = module
    sys.argv = [_FILENAME]
    sys.path.insert(0, "")
    source = payload.decode("utf-8", errors="replace")
    linecache.cache[_FILENAME] = (len(source), None, source.splitlines(keepends=True), _FILENAME)
    try:
        exec(compile(source, _FILENAME, "exec"), module.__dict__)  # noqa: S102  running the agent's code is the purpose
    except SystemExit:
        raise
    except BaseException as problem:  # noqa: BLE001  whatever the code raised is its result
        _print_own_frames(problem)
        return 1
    return 0


def _print_own_frames(problem: BaseException) -> None:
    frames = problem.__traceback__
    while frames is not None and frames.tb_frame.f_code.co_filename == __file__:
        frames = frames.tb_next
    traceback.print_exception(problem.with_traceback(frames))
