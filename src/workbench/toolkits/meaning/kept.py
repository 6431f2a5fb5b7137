"""Vectors that were made before, as one file: a key for each text, and 384 small numbers.

A key is made of the text itself: if the words of a tool change, its vector is made anew, and nobody has to think of it.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

WIDTH = 384
"""of a vector"""

Array = Any  # numpy carries no types that mypy is shown here

_LARGEST = 127


def key_of(text: str) -> int:
    """Of a text, in eight bytes."""
    return int.from_bytes(hashlib.blake2b(text.encode(errors="replace"), digest_size=8).digest(), "little")


class KeptVectors:
    """Those of a file. Never changed."""

    def __init__(self, keys: Array, rows: Array) -> None:
        """`keys` in rising order, one of each; `rows` as `small` makes them."""
        self._keys = keys
        self._rows = rows

    @classmethod
    def none(cls) -> KeptVectors:
        """No vectors."""
        return cls(np.zeros(0, np.uint64), np.zeros((0, WIDTH), np.int8))

    @classmethod
    def read(cls, path: Path) -> KeptVectors:
        """Raises: OSError, ValueError, KeyError: there is no such file, or it is not one of these."""
        with np.load(path, allow_pickle=False) as file:
            return cls(file["keys"], file["rows"])

    def __len__(self) -> int:
        return len(self._keys)

    def places(self, texts: Sequence[str]) -> Array:
        """For each text the number of its row; -1 if it has none."""
        wanted = np.array([key_of(text) for text in texts], dtype=np.uint64)
        if not len(self._keys):
            return np.full(len(wanted), -1)
        at = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
        return np.where(self._keys[at] == wanted, at, -1)

    def rows(self, places: Array) -> Array:
        """As float32, of length one."""
        return large(self._rows[places])


def packed(texts: Sequence[str], vectors: Array) -> bytes:
    """The file of these."""
    keys = np.array([key_of(text) for text in texts], dtype=np.uint64)
    unique, first = np.unique(keys, return_index=True)
    written = io.BytesIO()
    # Not compressed: such numbers do not get smaller.
    np.savez(written, keys=unique, rows=small(vectors[first]))
    return written.getvalue()


def small(vectors: Array) -> Array:
    """As int8: each row as large as it may be, since only its direction counts."""
    most = np.abs(vectors).max(axis=1, keepdims=True)
    return np.round(vectors / np.maximum(most, 1e-9) * _LARGEST).astype(np.int8)


def large(rows: Array) -> Array:
    """Back to float32, of length one."""
    vectors = rows.astype(np.float32)
    return vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
