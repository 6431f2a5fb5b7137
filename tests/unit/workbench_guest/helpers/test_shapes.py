"""The shape of any value fits on a page, and looking at it changes nothing."""

from __future__ import annotations

import inspect
import textwrap
from collections import OrderedDict
from typing import Any

import pytest

from workbench_guest.helpers import print_json_structure
from workbench_guest.helpers.shapes import MOST_LINES, shape


def test_what_the_docstring_shows_is_what_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    told = inspect.getdoc(print_json_structure) or ""
    example = told.partition(">>> ")[2].partition("\n\n")[0]
    call, _, expected = example.partition("\n")
    eval(call, {"print_json_structure": print_json_structure})
    assert capsys.readouterr().out == textwrap.dedent(expected) + "\n"


def test_one_of_each_kind() -> None:
    value = {
        "s": "x",
        "i": 1,
        "f": 1.5,
        "b": True,
        "n": None,
        "e": {},
        "l": [],
        "t": (1, "a"),
        "d": [[1]],
        7: {1.5: b"x"},
    }
    assert shape(value).splitlines() == [
        "{",
        '  "s": str,',
        '  "i": int,',
        '  "f": float,',
        '  "b": bool,',
        '  "n": None,',
        '  "e": {},',
        '  "l": [],',
        '  "t": [int],  # 2 items',
        '  "d": [  # 1 item',
        "    [int]  # 1 item",
        "  ],",
        "  7: {",
        "    1.5: bytes",
        "  }",
        "}",
    ]


@pytest.mark.parametrize(("value", "expected"), [(3, "int"), ("x", "str"), (None, "None"), ([], "[]"), ({}, "{}")])
def test_a_plain_value_is_its_type(value: Any, expected: str) -> None:
    assert shape(value) == expected


def test_objects_are_named_and_not_looked_into() -> None:
    numbers = iter([1, 2, 3])
    told = shape({"it": (number for number in numbers), "od": OrderedDict(a=1), "range": range(10**12)})
    assert '"it": generator,' in told
    assert '"a": int' in told
    assert '"range": range' in told
    assert next(numbers) == 1


def test_cycles_end() -> None:
    value: dict[str, Any] = {"list": []}
    value["list"].append(value)
    value["self"] = value
    told = shape(value)
    assert told.count("the one that holds this") == 2


def test_a_huge_list_is_its_first_element_and_a_count() -> None:
    assert shape([{"id": 1}] * 3_000_000).splitlines()[0] == "[  # 3,000,000 items"


def test_a_huge_dict_is_cut_and_counted() -> None:
    told = shape({str(number): number for number in range(100_000)}).splitlines()
    assert len(told) == 63
    assert told[-2] == "  … 99,940 more keys"


def test_depth_and_lines_are_bounded() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = {"x": deep}
    assert shape(deep).count("\n") < 30
    wide: Any = 1
    for _ in range(6):
        wide = {f"key {number}": wide for number in range(30)}
    told = shape(wide).splitlines()
    assert len(told) < MOST_LINES + 20
    assert told[-1] == "… and more"


def test_objects_that_raise_at_everything_are_named() -> None:
    class Odd(dict[Any, Any]):
        def __len__(self) -> int:
            raise RuntimeError

        def items(self) -> Any:
            raise RuntimeError

    class Key:
        def __hash__(self) -> int:
            return 1

        def __repr__(self) -> str:
            raise RuntimeError

    told = shape({"odd": Odd(), Key(): 1, "k" * 1000: 2, 10**5000: 3, '"\n': 4})
    assert '"odd": ' in told
    assert "Odd" in told
    assert "Key>: int" in told
    assert "<int>: int" in told
    assert '"\\"\\n": int' in told
    assert max(map(len, told.splitlines())) < 200
