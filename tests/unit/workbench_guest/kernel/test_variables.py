"""A table of the memory that nothing in the memory can break."""

from __future__ import annotations

from workbench_guest.kernel.variables import described


class Broken:
    """Raises at everything."""

    def __repr__(self) -> str:
        raise ValueError("no")

    def __sizeof__(self) -> int:
        raise ValueError("no")

    @property
    def shape(self) -> tuple[int, ...]:
        raise ValueError("no")


class Table:
    shape = (3, 4)


def test_each_has_type_size_and_a_short_preview() -> None:
    rows = described({"b": "text", "a": [1, 2, 3], "t": Table()}, 10)
    assert [row["name"] for row in rows] == ["a", "b", "t"]
    assert (rows[0]["type"], rows[0]["size"], rows[0]["preview"]) == ("list", "3 items", "[1, 2, 3]")
    assert rows[1]["size"] == "4 characters"
    assert rows[2]["size"] == "3 x 4"


def test_what_raises_is_named_and_not_raised() -> None:
    (row,) = described({"x": Broken()}, 10)
    assert row["preview"] == "<repr raised ValueError>" or "Broken" in row["preview"]
    assert row["size"] == ""


def test_what_is_long_is_cut_and_stays_on_one_line() -> None:
    (row,) = described({"x": "line\n" * 10_000}, 10)
    assert len(row["preview"]) <= 80
    assert "\n" not in row["preview"]


def test_no_more_than_asked_for() -> None:
    assert len(described({f"n{number}": number for number in range(50)}, 7)) == 7
