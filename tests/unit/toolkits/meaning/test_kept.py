"""Vectors are kept small, are found by the text they were made of, and point where they did."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from workbench.toolkits.meaning.kept import KeptVectors, packed


def vectors(count: int) -> Any:
    made = np.random.default_rng(7).normal(size=(count, 384)).astype(np.float32)
    return made / np.linalg.norm(made, axis=1, keepdims=True)


def test_what_was_kept_is_found_by_its_text_and_nothing_else_is(tmp_path: Path) -> None:
    texts = [f"tool number {number}" for number in range(200)]
    made = vectors(200)
    path = tmp_path / "kept.npz"
    path.write_bytes(packed([*texts, texts[0]], np.vstack([made, made[:1]])))
    kept = KeptVectors.read(path)
    assert len(kept) == 200
    assert list(kept.places(["another", texts[3] + " "])) == [-1, -1]
    back = kept.rows(kept.places(texts))
    assert np.allclose(np.linalg.norm(back, axis=1), 1, atol=1e-5)
    assert (back * made).sum(1).min() > 0.999


def test_the_same_texts_are_the_same_file(tmp_path: Path) -> None:
    made = vectors(3)
    assert packed(["a", "b", "c"], made) == packed(["c", "a", "b"], made[[2, 0, 1]])


def test_none_are_none() -> None:
    assert list(KeptVectors.none().places(["a"])) == [-1]


def test_a_file_of_something_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "kept.npz"
    path.write_bytes(b"not vectors")
    with pytest.raises(ValueError, match="pickle"):
        KeptVectors.read(path)
