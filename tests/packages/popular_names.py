"""Makes the list of popular Python packages from a ranking: see scripts/compile-popular-packages.

Popularity is no proof: what is one slip away from a far more used name is left out, and so is what people install in
error. Whoever needs one of those is helped by the operator's own list.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from workbench.packages.python_tables import PythonTables, normalised, tables

_FROM_THE_TOP = 5_000
_WELL_KNOWN = 1_500
"""names so far up are what others are taken for"""
_FAR_MORE_USED = 3
"""times nearer to the top; the ranking has no numbers of downloads"""
_SHORT = 4
"""names of so few letters are near to each other by chance"""
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789"
_HEAD = """\
# Distributions that very many use: what the policy 'popular' admits besides the reviewed table. One name a line.
# Made by scripts/compile-popular-packages from the ranking of {day} that the package guarddog {version}
# (Apache-2.0) carries: of its first {top}, {left} are left when look-alikes of far more used names, names that are
# installed in error and what is refused are taken out.
"""
_FILE = Path(__file__).parents[2] / "src" / "workbench" / "packages" / "lists" / "python" / "popular.txt"


def popular_names(ranked: Sequence[str], known: PythonTables) -> list[str]:
    """Of a ranking, the names that may be installed under the policy `popular`, sorted."""
    names = [normalised(name) for name in ranked[:_FROM_THE_TOP]]
    rank = {_squeezed(name): place for place, name in reversed(list(enumerate(names, 1)))}
    kept = [
        name
        for place, name in enumerate(names, 1)
        if name in known.distributions or not (_refused(name, known) or _look_alike(name, place, rank))
    ]
    return sorted(set(kept))


def _refused(name: str, known: PythonTables) -> bool:
    module = name.replace("-", "_")
    return (
        name in known.wrong
        or name in known.refused_distributions
        or module in known.generic
        # The reviewed table gives another distribution for the module of this name.
        or module in known.modules
        or module in known.refused_modules
        or module in sys.stdlib_module_names
        # Parts of other packages' wheels for GPUs, and names that somebody tried the index with.
        or name.startswith("nvidia-")
        or len(set(name)) == 1
    )


def _look_alike(name: str, place: int, rank: dict[str, int]) -> bool:
    squeezed = _squeezed(name)
    if len(squeezed) <= _SHORT:
        return False
    if rank[squeezed] < place:
        return True  # the same but for hyphens
    near = min((rank[other] for other in _one_edit_away(squeezed) if other in rank), default=place)
    return near <= _WELL_KNOWN and near * _FAR_MORE_USED < place


def _one_edit_away(name: str) -> Iterator[str]:
    for at in range(len(name) + 1):
        head, tail = name[:at], name[at:]
        yield from (head + letter + tail for letter in _LETTERS)
        if tail:
            yield head + tail[1:]
            yield from (head + letter + tail[1:] for letter in _LETTERS if letter != tail[0])
        if len(tail) > 1 and tail[0] != tail[1]:
            yield head + tail[1] + tail[0] + tail[2:]


def _squeezed(name: str) -> str:
    return name.replace("-", "")


def main(version: str, ranking: str) -> None:
    """Write the list."""
    found = json.loads(Path(ranking).read_text(encoding="utf-8"))
    day = datetime.datetime.fromtimestamp(found["downloaded_timestamp"], datetime.UTC).date()
    names = popular_names(found["packages"], tables())
    head = _HEAD.format(day=f"{day:%d %B %Y}", version=version, top=_FROM_THE_TOP, left=len(names))
    _FILE.write_text(head + "\n".join(names) + "\n", encoding="utf-8")
    print(f"{len(names)} of {_FROM_THE_TOP} names")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
