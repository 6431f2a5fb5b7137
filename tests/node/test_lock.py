from __future__ import annotations

import json
from pathlib import Path
from typing import Any

_LOCK = Path(__file__).parent / "package-lock.json"


def test_what_npm_brings_is_pinned_by_content_and_by_no_address() -> None:
    packages: dict[str, dict[str, Any]] = json.loads(_LOCK.read_text(encoding="utf-8"))["packages"]
    brought = {name: one for name, one in packages.items() if name}
    assert [name for name, one in brought.items() if not one.get("integrity", "").startswith("sha512-")] == []
    # It comes from whatever registry npm is configured for.
    assert [name for name, one in brought.items() if "resolved" in one] == []
