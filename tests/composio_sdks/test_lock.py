"""What the suite installs is pinned by content, and by no address of a registry."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_TYPESCRIPT = Path(__file__).parent / "typescript"


@pytest.mark.parametrize("folder", [".", "newest"])
def test_what_npm_brings_is_pinned_by_content_and_by_no_address(folder: str) -> None:
    lock = (_TYPESCRIPT / folder / "package-lock.json").read_text(encoding="utf-8")
    packages: dict[str, dict[str, Any]] = json.loads(lock)["packages"]
    brought = {name: one for name, one in packages.items() if name}
    assert [name for name, one in brought.items() if not one.get("integrity", "").startswith("sha512-")] == []
    # It comes from whatever registry npm is configured for.
    assert [name for name, one in brought.items() if "resolved" in one] == []


@pytest.mark.parametrize("line", ["0.13", "0.19", "0.30"])
def test_what_pip_brings_is_pinned_by_content_and_by_no_address(line: str) -> None:
    lock = (_ROOT / f"locks/composio-{line}.txt").read_text(encoding="utf-8")
    wanted = [text for text in lock.splitlines() if text and not text.startswith((" ", "#"))]
    assert any(text.startswith(f"composio=={line}.0 ") for text in wanted)
    assert [text for text in wanted if "==" not in text or not text.endswith("\\")] == []
    assert "://" not in lock
