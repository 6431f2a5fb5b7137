"""The same behaviours in the words of each language."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Language:
    """Code of one runtime."""

    keep: str
    """sets a variable to 41"""
    read: str
    """prints it, and one more"""
    says: str
    """what that prints"""
    fails: str
    flood: str
    """50 MB of `y`, in one line"""
    by_descriptor: str
    """prints `out` and `err` by descriptors 1 and 2, past the protocol"""
    endless: dict[str, str]
    """each says `on` first, and would never end"""
    leaves: str
    """starts `sleep 4711` in the background"""
    deaf: str
    """does not heed interrupts, after it has said `on`"""
    deaths: dict[str, tuple[str, str]]
    """each says `last words` first; with what the result says of it. By the descriptor: what a stock kernel has given
    to its own thread for sending may go with it"""


STOCK = Language(
    keep="kept = 41",
    read="print(kept, kept + 1)",
    says="41 42\n",
    fails="1 / 0",
    flood="print('y' * 50_000_000)",
    by_descriptor="import os\nos.write(1, b'out\\n')\nos.system('echo err >&2')",
    endless={
        "a loop": "print('on', flush=True)\nwhile True: pass",
        "a sleep": "import time\nprint('on', flush=True)\ntime.sleep(1000)",
        "a child": "import subprocess\nprint('on', flush=True)\nsubprocess.run(['sleep', '1000'])",
    },
    leaves="import subprocess\nleft = subprocess.Popen(['sleep', '4711'])",
    deaf="import signal, time\nprint('on', flush=True)\n"
    "while True:\n    try:\n        time.sleep(1000)\n    except KeyboardInterrupt:\n        pass",
    deaths={
        "an exit": ("import os\nos.write(1, b'last words\\n')\nos._exit(7)", "code 7"),
        "a kill": (
            "import os\nos.write(1, b'last words\\n')\nos.kill(os.getpid(), 9)",
            "killed by signal 9",
        ),
        "a crash": (
            "import ctypes, os\nos.write(1, b'last words\\n')\nctypes.string_at(0)",
            "killed by signal 11",
        ),
    },
)
BASH = Language(
    keep="kept=41",
    read="echo $kept $((kept + 1))",
    says="41 42\n",
    fails="false",
    flood="head -c 50000000 /dev/zero | tr '\\0' y; echo",
    by_descriptor="echo out; echo err >&2",
    endless={
        "a loop": "echo on; while true; do :; done",
        "a sleep": "echo on; sleep 1000; echo never",
        "a pipe": "echo on; sleep 1000 | cat; echo never",
        "a loop of sleeps": "echo on; for i in 1 2 3; do sleep 1000; done",
    },
    leaves="sleep 4711 &",
    deaf="trap '' INT; echo on; while true; do sleep 1000; done",
    deaths={
        "an exit": ("echo last words; builtin exit 7", "code 7"),
        "a kill": ("echo last words; kill -9 $$", "killed by signal 9"),
        "a crash": ("echo last words; kill -SEGV $$", "killed by signal 11"),
    },
)
LANGUAGES = {"stock": STOCK, "bash": BASH}
