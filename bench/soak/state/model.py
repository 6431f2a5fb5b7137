"""A memory as a lane keeps it itself, and the cells that change the kernel's in the same way."""

from __future__ import annotations

import array
import copy
import random
import zlib
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from workbench.model.ids import CellId, new_cell_id

RAN = "ran"
"""the file below /mnt/files that every cell writes its id into, first of all"""
LIMIT_S = 30.0
"""of cells that should need a moment, on a machine that has much else to do"""
_LENGTH = 4096
# The same statements there and here, but for what the bench's own Python does not have.
_NEW = "c, l, d, rng, luck, a = {first}, [], {{}}, random.Random({first}), {luck}, {a}; luck.seed({first}); d['l'] = l"
_NEW_THERE = {"luck": "random._inst", "a": f"numpy.zeros({_LENGTH}, dtype='int64')"}
_NEW_HERE = {"luck": "random.Random()", "a": f"array.array('q', bytes({8 * _LENGTH}))"}
_FIRST, _FIRST_OF_START_UP = 0, 1000
START_UP = f"import random, numpy\n{_NEW.format(first=_FIRST_OF_START_UP, **_NEW_THERE)}"
_SEEN = """\
def seen():
    if 'c' not in globals():
        return None
    items = sorted((name, value) for name, value in d.items() if name != 'l')
    states = [zlib.crc32(repr(one.getstate()).encode()) for one in (rng, luck)]
    return [c, l, items, d['l'] is l, states, zlib.crc32(a.tobytes())]
"""
_CELL = """\
import os, random, zlib, numpy
_ran = os.open('/mnt/files/{ran}', os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
os.write(_ran, b'{cell}\\n')
os.close(_ran)
{seen}
print(os.getpid(), os.stat('/proc/self/ns/pid').st_ino, flush=True)
print(seen(), flush=True)
if 'c' not in globals():
    {new}
{change}
print(seen(), flush=True)
{ending}
"""


class Ending(Enum):
    """How a cell ends, once it has changed the memory and has said so."""

    RETURNS = ""
    RAISES = "1 / 0"
    SEGFAULT = "import ctypes; ctypes.string_at(0)"
    EXITS = "os._exit(3)"
    ABORTS = "os.abort()"
    KILLS_ITSELF = "os.kill(os.getpid(), 9)"
    BOMB = "_bomb = []\nwhile True: _bomb.append(bytearray(16 * 2**20))"
    WAITS = "import time; time.sleep(100)"
    STUBBORN = "import time\nwhile True:\n    try:\n        time.sleep(1)\n    except BaseException:\n        pass"


CRASHES = (Ending.SEGFAULT, Ending.EXITS, Ending.ABORTS, Ending.KILLS_ITSELF)


@dataclass(frozen=True, slots=True)
class Order:
    """A cell to be sent."""

    change: str
    ending: Ending = Ending.RETURNS
    limit_s: float = LIMIT_S
    cell: CellId = field(default_factory=new_cell_id)

    @property
    def code(self) -> str:
        """What the kernel is given."""
        new = _NEW.format(first=_FIRST, **_NEW_THERE)
        return _CELL.format(ran=RAN, cell=self.cell, seen=_SEEN, new=new, change=self.change, ending=self.ending.value)

    def __str__(self) -> str:
        return f"{self.cell} {self.change!r} and {self.ending.name}"


@dataclass(frozen=True, slots=True)
class Memory:
    """What a kernel must hold after a cell; never changed, only followed by another one."""

    count: int = 0
    """of that cell"""
    names: dict[str, Any] = field(default_factory=dict)
    """nothing at all, or all of them"""

    @classmethod
    def new(cls, *, start_up: bool) -> Memory:
        """As every kernel begins."""
        return cls(0, _new(_FIRST_OF_START_UP) if start_up else {})

    def after(self, order: Order) -> Memory:
        """What it becomes by a cell that came so far as to change it."""
        names = copy.deepcopy(self.names) or _new(_FIRST)
        exec(order.change, names)
        del names["__builtins__"]
        return Memory(self.count + 1, names)

    def __str__(self) -> str:
        """As the kernel prints it."""
        if not self.names:
            return "None"
        lane: dict[str, Any] = {"zlib": zlib, **self.names}
        exec(_SEEN, lane)
        return str(lane["seen"]())


def _new(first: int) -> dict[str, Any]:
    names: dict[str, Any] = {"random": random, "array": array}
    exec(_NEW.format(first=first, **_NEW_HERE), names)
    for name in ("random", "array", "__builtins__"):
        del names[name]
    return names


def some_change(luck: random.Random) -> str:
    """One that has the same effect there and here."""
    number = luck.randrange(10**6)
    where = luck.randrange(_LENGTH - 8)
    return luck.choice(
        (
            f"c += {number}",
            f"l.append({number}); l[:] = l[-20:]",
            f"d['k{number % 30}'] = c; c += 1",
            f"d.pop('k{number % 30}', None); c += 1",
            "l.append(rng.getrandbits(32)); l[:] = l[-20:]",
            "l.append(luck.random()); l[:] = l[-20:]",
            f"luck.seed({number}); c += 1",
            f"for i in range({where}, {where + 8}): a[i] += {number}",
            f"l = [*l, {number}]; d = dict(d, l=l); c += 1",
        )
    )
