"""Without the model's weights it is said why, and what to do; nothing is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from workbench.errors import NotConfigured
from workbench.toolkits.meaning.sentences import Sentences


async def test_without_weights_it_is_said_what_to_install(tmp_path: Path) -> None:
    sentences = Sentences(tmp_path)
    assert "scripts/install-search-model" in sentences.why_not()
    with pytest.raises(NotConfigured, match="weights of MiniLM are not installed"):
        await sentences.of(["a"])
    await sentences.aclose()
    await sentences.aclose()


async def test_weights_that_cannot_be_read_are_told_once_and_from_then_on(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\x02\0\0\0\0\0\0\0{}")
    (tmp_path / "vocab.txt").write_text("[UNK]\n", encoding="utf-8")
    sentences = Sentences(tmp_path)
    assert sentences.why_not() == ""
    for _ in range(2):
        with pytest.raises(NotConfigured, match="cannot be read"):
            await sentences.of(["a"])
    assert "cannot be read" in sentences.why_not()
    await sentences.aclose()
