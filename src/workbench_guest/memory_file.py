"""A file without a name, for what one process of a sandbox hands to another."""

from __future__ import annotations

import errno
import os

from workbench_guest.messages import SCRATCH


def memory_file(name: str) -> int:
    """Empty, to be read and written; closed with the program. Its memory is the sandbox's either way."""
    try:
        return os.memfd_create(name)
    except OSError as problem:
        # Where no control group counts their memory, the filter has none of them.
        if problem.errno != errno.ENOSYS:
            raise
        return os.open(SCRATCH, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
