"""Which folder this is: one that was removed and made anew under the same name is another one."""

from __future__ import annotations

import ctypes
import os
import struct

_BORN_ASKED, _BORN_KNOWN = 0x800, 0x800
_EMPTY_PATH = 0x1000
_BORN_AT = 80
_SIZE = 256

_libc = ctypes.CDLL(None, use_errno=True)


def incarnation_of(folder: int) -> str:
    """Of an open folder: the same for as long as it exists, whatever it is called, and for no other one.

    A number is given again when its folder is gone, so the moment in which it was made belongs to it. The disk's own
    number does not: it may be another one after the next start of the machine.
    """
    told = ctypes.create_string_buffer(_SIZE)
    number = os.fstat(folder).st_ino
    if _libc.statx(ctypes.c_int(folder), b"", _EMPTY_PATH, _BORN_ASKED, told) != 0:
        return f"{number}"
    (mask,) = struct.unpack_from("=I", told)
    seconds, nanoseconds = struct.unpack_from("=qI", told, _BORN_AT)
    return f"{number}-{seconds}-{nanoseconds}" if mask & _BORN_KNOWN else f"{number}"
