"""Cells that nobody sent: in the zygote for what is built on first use, in a waiting fork for the pages it will need.

Nothing of them may be seen later: no name, no count, no output.
"""

from __future__ import annotations

import contextlib
import io
import sys
from typing import Any

import zmq
from tornado.ioloop import IOLoop

from workbench_guest import afterfork
from workbench_guest.kernel.kernel import METADATA

# What Python and IPython build on first use: compilers, formatters, tracebacks.
_CELLS = (
    "1 + 1",
    "print('x')",
    "import asyncio; await asyncio.sleep(0)",
    "%time 1",
    "undefined_name",
    "def f():\n    return {}['x']\nf()",
    "exit()",
)
_WITH_PANDAS = (
    "import pandas as pd, numpy as np; pd.DataFrame({'a': np.arange(3), 'b': list('xyz')})",
    "pd.DataFrame({'a': [1, 2], 'b': [3., 4.]}).groupby('a').mean().describe()",
)
_WITH_PYPLOT = ("import matplotlib.pyplot as plt; plt.plot([1, 2]); plt.bar(['a', 'b'], [1, 2]); plt.show()",)
_TRIVIAL = "1 + 1"
# How most cells begin: names that a correction looks for, and that the cell brings itself.
_USUAL = "import numpy as np, pandas as pd\nint(pd.Series(np.arange(4)).sum())\ndel np, pd"
# The interpreter rewrites code that has run a few times; done before the fork, no fork has to copy it for that.
_OFTEN = 20


class Nowhere:
    """A socket for the rehearsal: what is sent to it is gone."""

    def send_multipart(self, *_: Any, **__: Any) -> None:
        """Nothing."""

    def flush(self, *_: Any) -> None:
        """Nothing."""


def rehearse(kernel: Any) -> None:
    """In the zygote, before the first fork."""
    cells = [*_CELLS]
    often = [_TRIVIAL]
    if "pandas" in sys.modules:
        cells += _WITH_PANDAS
        often.append(_USUAL)
    if "matplotlib.pyplot" in sys.modules:
        cells += _WITH_PYPLOT
    shell = kernel.shell
    before = set(shell.user_ns)
    loop = IOLoop(make_current=False)
    kernel.shell_stream = Nowhere()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        for cell in [*cells, *often * _OFTEN]:
            _run(kernel, loop, cell, store_history=True)
    loop.close(all_fds=True)
    kernel.shell_stream = None
    for name in set(shell.user_ns) - before:
        del shell.user_ns[name]
    _forget(shell)


def warm_up(kernel: Any, loop: IOLoop) -> None:
    """In a fork that waits: the pages which every cell writes to become its own before anyone waits for them."""
    shell = kernel.shell
    names = dict(shell.user_ns)
    loop.make_current()
    # The sockets are the real ones, bound to nothing and with nobody at the other end.
    _run(kernel, loop, _TRIVIAL, store_history=False)
    shell.user_ns.clear()
    shell.user_ns.update(names)
    shell.user_ns["_oh"].clear()
    shell.displayhook._ = shell.displayhook.__ = shell.displayhook.___ = ""
    _forget_the_last(shell)
    afterfork.refresh()


def _run(kernel: Any, loop: IOLoop, code: str, *, store_history: bool) -> None:
    """As a message, so that all of its way is taken."""
    content = {
        "code": code,
        "silent": False,
        "store_history": store_history,
        "user_expressions": {},
        "allow_stdin": False,
        "stop_on_error": False,
    }
    session = kernel.session
    # As the host marks its cells, so that corrections are rehearsed as well.
    parts = session.serialize(session.msg("execute_request", content, metadata={METADATA: {}}))
    frames = [zmq.Frame(part) for part in (b"rehearsal", *parts)]
    loop.run_sync(lambda: kernel.shell_main(None, frames))
    kernel.set_parent([], {})
    session.digest_history.clear()


def _forget(shell: Any) -> None:
    """Counters, In, Out, the last exception."""
    history = shell.history_manager
    history.db_input_cache.clear()
    history.db_output_cache.clear()
    shell.reset(new_session=True)
    # Past sessions are asked for as well; this is the first.
    history.db.close()
    history.init_db()
    history.new_session()
    shell.execution_count = 1
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)
    _forget_the_last(shell)
    if (fonts := sys.modules.get("matplotlib.font_manager")) is not None:
        # Open files: a fork would close their numbers when those mean other files.
        vars(fonts)["_get_font"].cache_clear()


def _forget_the_last(shell: Any) -> None:
    shell.last_execution_result = None
    shell.last_execution_succeeded = True
