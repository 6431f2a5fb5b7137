"""What is put beside what IPython shows, and for which values."""

from __future__ import annotations

from typing import Any

import pytest

from workbench_guest.rich import display, tables
from workbench_guest.rich.display import RichFormatter


def named(package: str, name: str, **more: Any) -> Any:
    """A value of a class that says it is this one."""
    return type(name, (), {"__module__": package, "__repr__": lambda _: "shown", **more})()


def test_other_values_have_no_format_of_ours() -> None:
    for value in (1, "x", [1], named("mine", "DataFrame"), named("pandas", "Frame"), named("pandasql.x", "Series")):
        assert set(RichFormatter().format(value)[0]) == {"text/plain"}


def test_what_fails_is_shown_without_it() -> None:
    assert RichFormatter().format(named("pandas.core.frame", "DataFrame"))[0] == {"text/plain": "shown"}


def test_a_class_without_a_module_is_no_reason_to_fail() -> None:
    assert RichFormatter().format(named("x", "DataFrame", __module__=None))[0] == {"text/plain": "shown"}


def test_who_asks_for_some_formats_gets_those(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(display._MAKERS, ("pandas", "DataFrame"), lambda _: (tables.MIME, {"rows": []}))
    frame = named("pandas.core.frame", "DataFrame")
    assert set(RichFormatter().format(frame)[0]) == {"text/plain", tables.MIME}
    assert set(RichFormatter().format(frame, include={"text/plain"})[0]) == {"text/plain"}
    assert set(RichFormatter().format(frame, exclude={tables.MIME})[0]) == {"text/plain"}
