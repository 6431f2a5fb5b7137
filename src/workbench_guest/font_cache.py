"""The list of fonts lies in the image, made once, where nobody can write; matplotlib wants a folder of its own."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_FOLDER = "MPLCONFIGDIR"
_LIBRARY = "matplotlib"


def begin() -> None:
    """The folder is made when it is wanted: a home has nothing in it that its owner did not ask for."""
    shipped = os.environ.get(_FOLDER, "")
    if shipped and _LIBRARY not in sys.modules and not os.access(shipped, os.W_OK):
        sys.meta_path.insert(0, _Before())


class _Before:
    """Finds nothing, and sees who comes by."""

    def find_spec(self, name: str, *_: Any) -> None:
        """For matplotlib, a folder is made."""
        if name == _LIBRARY:
            _settle()


def _settle() -> None:
    """A folder in the agent's home, with the image's list in it: without one, fonts are looked for all over again."""
    shipped = os.environ.get(_FOLDER, "")
    if not shipped or os.access(shipped, os.W_OK):
        return
    own = os.path.join(os.environ.get("HOME") or "/home/user", ".config", "matplotlib")
    try:
        if not os.path.isdir(own):
            os.makedirs(own)
            for name in os.listdir(shipped):
                os.symlink(os.path.join(shipped, name), os.path.join(own, name))
    except OSError:
        # A home that is full or closed: matplotlib finds a place by itself, and says so.
        return
    os.environ[_FOLDER] = own
