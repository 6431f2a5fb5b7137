"""Ids become file and control-group names: only what is safe as one passes."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from workbench.errors import InvalidRequest
from workbench.model import ids

CHECKS: list[Callable[[str], str]] = [ids.sandbox_id, ids.process_id, ids.mount_id]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("text", ["a", "0", "sb-1_x", "a" * 48])
def test_what_is_safe_as_a_file_name_passes_unchanged(check: Callable[[str], str], text: str) -> None:
    assert check(text) == text


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(
    "text",
    ["", ".", "..", "a/b", "../a", "-a", "_a", "A", "a b", "a\n", "\na", "a\0", "é", "\u0661", "a" * 49, "a.b", "ﬁ"],
)
def test_anything_else_is_refused(check: Callable[[str], str], text: str) -> None:
    with pytest.raises(InvalidRequest, match="not a"):
        check(text)


def test_a_refusal_does_not_repeat_a_long_text_in_full() -> None:
    with pytest.raises(InvalidRequest) as refusal:
        ids.sandbox_id("x" * 10_000)
    assert len(refusal.value.message) < 300


def test_new_ids_are_valid_and_all_different() -> None:
    for make, check in ((ids.new_sandbox_id, ids.sandbox_id), (ids.new_process_id, ids.process_id)):
        made = {check(make()) for _ in range(1000)}
        assert len(made) == 1000
    assert ids.checked("host", ids.new_host_id())
