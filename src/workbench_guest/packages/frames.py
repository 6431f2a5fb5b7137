"""Whose code a frame runs: the agent's own, or a library's, which knows what to do without what it asks for."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import types

# Where libraries are at home, also in an environment that the agent made.
_LIBRARIES = ("/site-packages/", "/dist-packages/")


def is_the_agents(frame: types.FrameType) -> bool:
    """Whether it is code that the agent wrote: of a cell, of a text, or of a file where the agent can write."""
    if str(frame.f_globals.get("__name__") or "").partition(".")[0] == "workbench_guest":
        return False
    file = frame.f_code.co_filename
    if not os.path.isabs(file):
        return not file.startswith("<frozen ")
    if any(folder in file for folder in _LIBRARIES) or file.startswith((f"{sys.prefix}/", f"{sys.base_prefix}/")):
        return False
    return file.startswith(tuple(f"{folder}/" for folder in _own_folders()))


def _own_folders() -> tuple[str, ...]:
    """An engine that isolates nothing has them elsewhere, and says where in variables."""
    environment = os.environ
    return (
        environment.get("HOME") or "/home/user",
        environment.get("TMPDIR") or "/tmp",
        environment.get("WORKBENCH_FILES") or "/mnt/files",
        "/tmp",
        "/var/tmp",
        "/dev/shm",
    )
