"""Tables for people: aligned, and without a guest's control characters."""

from __future__ import annotations

import pytest

from workbench.cli.tables import lasting, print_table, size


def test_columns_are_as_wide_as_they_need_to_be(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("A", "LONG"), [("wide one", "1"), ("b", "")])
    assert capsys.readouterr().out == "A         LONG\nwide one  1\nb\n"


def test_a_guests_words_cannot_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("A",), [("\x1b]0;pwned\x07\x1b[2Jx\r\n\u202e",)])
    out = capsys.readouterr().out
    assert out == "A\n?]0;pwned??[2Jx???\n"


def test_numbers_are_as_people_say_them() -> None:
    assert [size(n) for n in (0, 1023, 1024, 1536 * 1024, 3 << 30)] == ["0 B", "1023 B", "1.0 KB", "1.5 MB", "3.0 GB"]
    assert [lasting(n) for n in (0.25, 59, 90, 7200, 172800)] == ["0.2 s", "59.0 s", "1.5 min", "2.0 h", "2.0 d"]
