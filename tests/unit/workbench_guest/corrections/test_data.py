"""Data of tools is real dict, list, str and tuple for all who take it, and is read forgivingly by cells alone."""

from __future__ import annotations

import copy
import importlib
import json
import pickle
import pprint
from typing import Any

import jsonschema
import numpy
import pydantic
import pytest

from workbench_guest.corrections.data import Dresser, ToolDict, ToolResult, ToolStr, plain, yaml_representers
from workbench_guest.corrections.rules import DEFAULT, SWITCHES

# It comes without types.
yaml: Any = importlib.import_module("yaml")
_PLAIN: dict[str, Any] = {"aB": 1, "rows": [{"n": 1.5}, {"n": None}], "text": '{"in": [1]}', "words": "x", "e": {}}


def _made(on: frozenset[str] = DEFAULT) -> Any:
    return Dresser(on).data(copy.deepcopy(_PLAIN))


@pytest.mark.parametrize("on", [DEFAULT, frozenset(SWITCHES)])
def test_it_is_what_it_is_made_of(on: frozenset[str]) -> None:
    made = _made(on)
    assert isinstance(made, dict)
    assert isinstance(made["rows"], list)
    assert isinstance(made["text"], str)
    assert made == _PLAIN
    assert repr(made) == repr(_PLAIN)
    assert pprint.pformat(made) == pprint.pformat(_PLAIN)
    assert hash(made["text"]) == hash(_PLAIN["text"])
    assert plain(made) == _PLAIN
    assert type(plain(made)) is dict


@pytest.mark.parametrize("on", [DEFAULT, frozenset(SWITCHES)])
def test_everybody_writes_it_as_they_write_plain_data(on: frozenset[str]) -> None:
    made = _made(on)
    yaml_representers(yaml)
    assert json.dumps(made) == json.dumps(_PLAIN)
    assert json.dumps(made, indent=1, sort_keys=True) == json.dumps(_PLAIN, indent=1, sort_keys=True)
    assert yaml.safe_dump(made) == yaml.safe_dump(_PLAIN)
    assert yaml.dump(made) == yaml.dump(_PLAIN)
    assert numpy.array(made["rows"]).shape == (2,)
    assert numpy.asarray(made).ndim == 0


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_pickles_have_plain_types(protocol: int) -> None:
    made = _made(frozenset(SWITCHES))
    back = pickle.loads(pickle.dumps(made, protocol))
    assert back == _PLAIN
    assert (type(back), type(back["rows"]), type(back["text"]), type(back["rows"][0])) == (dict, list, str, dict)
    pair = pickle.loads(pickle.dumps(ToolResult((made, "")), protocol))
    assert type(pair) is tuple


def test_one_that_holds_itself_can_be_pickled_and_copied() -> None:
    made = _made()
    made["self"] = made
    back = pickle.loads(pickle.dumps(made))
    assert back["self"] is back
    assert copy.deepcopy(made)["self"] is not made


def test_copies_parts_matches_and_unpacking_are_as_they_are() -> None:
    made = _made()
    assert copy.copy(made) == copy.deepcopy(made) == made.copy() == _PLAIN
    assert dict(**made) == {**made} == made | {} == _PLAIN
    match made:
        case {"aB": number, **rest}:
            assert (number, len(rest)) == (1, 4)
        case _:
            pytest.fail("a mapping is one")
    match ToolResult(("data", "")):
        case (data, ""):
            assert data == "data"
        case _:
            pytest.fail("a sequence is one")


class _Model(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(strict=True)
    aB: int  # noqa: N815
    rows: list[dict[str, float | None]]
    text: str


def test_validators_take_it_also_strict_ones() -> None:
    made = _made(frozenset(SWITCHES))
    assert _Model.model_validate(made).rows == _PLAIN["rows"]
    jsonschema.validate(made, {"type": "object", "properties": {"rows": {"type": "array"}, "text": {"type": "string"}}})


def test_code_that_is_not_a_cells_reads_it_as_python_does() -> None:
    made = _made(frozenset(SWITCHES))
    with pytest.raises(KeyError) as caught:
        made["a_b"]
    assert caught.value.args == ("a_b",)
    assert made.get("a_b") is None
    assert made.get("a_b", 3) == 3
    assert not hasattr(made, "rows")
    with pytest.raises(TypeError):
        made["text"]["in"]
    with pytest.raises(TypeError):
        made["rows"]["n"]
    with pytest.raises(AttributeError):
        made["text"].get("in")
    with pytest.raises(TypeError):
        ToolResult((made, ""))["aB"]


def test_no_attribute_can_be_set_as_on_any_dict() -> None:
    with pytest.raises(AttributeError):
        _made().extra = 1
    assert not hasattr(ToolDict(), "__dict__")


def test_texts_are_dressed_only_where_they_may_be_json() -> None:
    made = _made()
    assert isinstance(made["text"], ToolStr)
    assert type(made["words"]) is str


def test_what_is_nested_without_end_stays_plain() -> None:
    deep: Any = []
    for _ in range(5000):
        deep = [deep]
    assert Dresser(DEFAULT).data(deep) is deep
