"""Where a kernel's cells start."""

from __future__ import annotations

import os

from workbench_guest.messages import FILES, HOME


def enter(folder: str) -> str:
    """Go there, and make it if need be; what is to be said if it cannot be used, which is no reason to have no kernel.

    Raises:
        OSError: not even home can be.
    """
    try:
        os.makedirs(_as_seen_here(folder), exist_ok=True)
        os.chdir(_as_seen_here(folder))
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or problem
        os.chdir(_as_seen_here(HOME))
        return f"[sandbox] cells start in {HOME}, as the working folder {folder!r} cannot be used: {why}\n"
    return ""


def _as_seen_here(folder: str) -> str:
    """An engine that isolates nothing has its folders elsewhere, and says where in variables."""
    for inside, variable in ((HOME, "HOME"), (FILES, "WORKBENCH_FILES")):
        if folder == inside or folder.startswith(inside + "/"):
            return os.environ.get(variable, inside) + folder[len(inside) :]
    return folder
