"""One whole task, for any client: load a file, plot it, read the picture, break the cell twice, recover, finish.

Imports the standard library only: fastmcp's client runs it in an environment of its own.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

CODE, SHELL = "COMPOSIO_REMOTE_WORKBENCH", "COMPOSIO_REMOTE_BASH_TOOL"

AMOUNTS = {"north": 25, "south": 75, "west": 50}
TOTAL = sum(AMOUNTS.values())
WIDTH, HEIGHT = 300, 200

_FILE = "\n".join(["region,amount", *(f"{region},{amount}" for region, amount in AMOUNTS.items())])
_IMPORT = f"cat > /mnt/files/sales.csv <<'END'\n{_FILE}\nEND\nwc -l < /mnt/files/sales.csv"
_LOAD = "import pandas as pd\nsales = pd.read_csv('/mnt/files/sales.csv')\nlen(sales)"
# Bars side by side that fill the picture from edge to edge, so that heights can be read from it.
_PLOT = f"""
import matplotlib.pyplot as plt
%config InlineBackend.print_figure_kwargs = {{"bbox_inches": None}}
figure = plt.figure(figsize=({WIDTH / 100}, {HEIGHT / 100}), dpi=100)
axes = figure.add_axes((0, 0, 1, 1))
axes.bar(range(len(sales)), sales["amount"], width=1, color="#0000ff", antialiased=False)
axes.set(xlim=(-0.5, len(sales) - 0.5), ylim=(0, 100))
axes.axis("off")
plt.show()
"""
_RAISES = "sales['amuont'].sum()"
_CRASHES = "import os\nos._exit(1)"
_FINISH = "total = int(sales['amount'].sum())\nopen('/mnt/files/total.txt', 'w').write(str(total))\ntotal"


@dataclass(frozen=True)
class Said:
    """An answer, however a client holds it."""

    structured: dict[str, Any]
    is_error: bool
    pictures: tuple[bytes, ...] = ()

    @classmethod
    def of(cls, message: dict[str, Any]) -> Said:
        """From the message, as the protocol writes it."""
        pictures = [one for one in message["content"] if one["type"] == "image"]
        assert all(one["mimeType"] == "image/png" for one in pictures), pictures
        return cls(
            structured=message["structuredContent"],
            is_error=message.get("isError") or False,
            pictures=tuple(base64.b64decode(one["data"]) for one in pictures),
        )


Ask = Callable[[str, dict[str, Any]], Awaitable[Said]]


async def perform(ask: Ask) -> None:
    """Every step, each looked at."""
    said = await _well(ask, SHELL, {"command": _IMPORT})
    assert said["stdout"].strip() == str(len(AMOUNTS) + 1), said
    assert (await _well(ask, CODE, {"code_to_execute": _LOAD}))["results"] == str(len(AMOUNTS))
    shown = await ask(CODE, {"code_to_execute": _PLOT})
    assert shown.structured["successful"], shown.structured
    (picture,) = shown.pictures
    assert heights(picture) == list(AMOUNTS.values())
    await _broken(ask, {"code_to_execute": _RAISES}, "KeyError")
    await _broken(ask, {"code_to_execute": _CRASHES}, "lost")
    await _refused(ask)
    assert (await _well(ask, CODE, {"code_to_execute": _FINISH}))["results"] == str(TOTAL)
    assert (await _well(ask, SHELL, {"command": "cat /mnt/files/total.txt"}))["stdout"] == str(TOTAL)


async def _well(ask: Ask, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    said = await ask(tool, arguments)
    assert said.structured["successful"], said.structured
    assert not said.is_error
    assert "next" not in said.structured
    data: dict[str, Any] = said.structured["data"]
    return data


async def _broken(ask: Ask, arguments: dict[str, Any], why: str) -> None:
    """A cell that began: no error of the protocol's, and what it says is next shows that the variables are there."""
    said = await ask(CODE, arguments)
    assert not said.is_error
    assert not said.structured["successful"]
    assert why in said.structured["error"], said.structured["error"]
    after = await _next(ask, said)
    assert "sales" in str(after.structured), after.structured


async def _refused(ask: Ask) -> None:
    """A cell that never began, as it named a session that there is not."""
    said = await ask(CODE, {"code_to_execute": "len(sales)", "session_id": "nobody-has-this-one"})
    assert said.is_error
    assert said.structured["error"].startswith("not run"), said.structured
    await _next(ask, said)


async def _next(ask: Ask, said: Said) -> Said:
    step = said.structured["next"]
    after = await ask(step["tool"], step["arguments"])
    assert not after.is_error, after.structured
    assert after.structured["successful"], after.structured
    return after


def heights(png: bytes) -> list[int]:
    """Of the bars, in percent of the picture: how far blue goes in the middle of each third."""
    width, height, rows = _pixels(png)
    assert (width, height) == (WIDTH, HEIGHT)
    size = len(rows[0]) // width
    found = []
    for bar in range(len(AMOUNTS)):
        at = (2 * bar + 1) * width // (2 * len(AMOUNTS)) * size
        found.append(round(100 * sum(row[at : at + 3] == b"\x00\x00\xff" for row in rows) / height))
    return found


def _pixels(png: bytes) -> tuple[int, int, list[bytes]]:
    """Width, height and rows of a picture with 8 bits a colour."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    at, data, width, height, kind = 8, b"", 0, 0, 0
    while at < len(png):
        length, name = struct.unpack(">I4s", png[at : at + 8])
        body = png[at + 8 : at + 8 + length]
        if name == b"IHDR":
            width, height, depth, kind = struct.unpack(">IIBB", body[:10])
            assert depth == 8
        data += body if name == b"IDAT" else b""
        at += length + 12
    size = {2: 3, 6: 4}[kind]
    packed, step = zlib.decompress(data), width * size + 1
    rows: list[bytes] = []
    for number in range(height):
        line = packed[number * step : (number + 1) * step]
        rows.append(_unfiltered(line[0], line[1:], rows[-1] if rows else bytes(width * size), size))
    return width, height, rows


def _unfiltered(kind: int, line: bytes, above: bytes, size: int) -> bytes:
    out = bytearray(line)
    for i, value in enumerate(line):
        left = out[i - size] if i >= size else 0
        corner = above[i - size] if i >= size else 0
        out[i] = (value + (0, left, above[i], (left + above[i]) // 2, _nearest(left, above[i], corner))[kind]) % 256
    return bytes(out)


def _nearest(left: int, up: int, corner: int) -> int:
    guess = left + up - corner
    return min((left, up, corner), key=lambda one: abs(guess - one))
