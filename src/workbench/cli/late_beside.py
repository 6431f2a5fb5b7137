"""What an image gets later, PyTorch, brought beside a server that serves already: by a process of its own."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator

from workbench.cli.printing import notice
from workbench.images.additions import ChosenImage
from workbench.images.late import late_state
from workbench.settings import Settings

# Of that process alone: whatever runs in sandboxes goes first.
_LEAST_PRIORITY = "19"
_STOP_S = 15.0


@contextlib.asynccontextmanager
async def late_beside(settings: Settings) -> AsyncIterator[None]:
    """Have it brought, if it is missing; what it says goes to our standard error. It is ended with this, and goes on
    where it was the next time.
    """
    state = late_state(settings.images_dir, ChosenImage(settings.data_dir, settings.images_dir).find())
    if state is None or state.version:
        yield
        return
    notice("PyTorch is not there yet and arrives meanwhile; everything else works")
    command = ("nice", "-n", _LEAST_PRIORITY, sys.executable, "-m", "workbench", "image", "build", "--late")
    bringing = await asyncio.create_subprocess_exec(
        *command,
        env={**os.environ, **settings.host_env()},
        stdin=asyncio.subprocess.DEVNULL,
        # Ours may be read by programs.
        stdout=sys.stderr.fileno(),
        start_new_session=True,
    )
    try:
        yield
    finally:
        await _end(bringing)


async def _end(process: asyncio.subprocess.Process) -> None:
    """Asked first: it ends what it has started."""
    for ask in (process.terminate, process.kill):
        if process.returncode is not None:
            return
        with contextlib.suppress(ProcessLookupError):
            ask()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _STOP_S)
