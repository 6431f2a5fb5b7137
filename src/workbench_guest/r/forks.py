"""Forks that R makes of this process, which run R's code and come back to Python when they print.

R knows nothing of Python's lock: whichever thread held it at that moment is not there in the fork, and never lets go.
So it is taken before, by who forks, and let go afterwards on both sides.
"""

from __future__ import annotations

import ctypes


def guard() -> None:
    """Once in a process. Python itself starts programs without such a fork, and nothing here calls `os.fork`."""
    register = getattr(ctypes.CDLL(None), "__register_atfork")
    register.argtypes = [ctypes.c_void_p] * 4
    python = ctypes.pythonapi

    def address(name: str) -> ctypes.c_void_p:
        return ctypes.cast(getattr(python, name), ctypes.c_void_p)

    take, let_go = address("PyGILState_Ensure"), address("PyEval_SaveThread")
    # The second one's word to the fork comes after the first one's.
    register(take, let_go, address("PyOS_AfterFork_Child"), None)
    register(None, None, let_go, None)
