"""Data of tools in a sandbox, given to the libraries that people give it to: all write and read what plain data gives.

The libraries that the image lacks are installed by their import.
"""

from __future__ import annotations

from collections.abc import Iterator

import httpx2
import pytest
from tests.corrections.asking import Notebook

from workbench.model.corrections import SWITCHES

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]
_DATA = """
import json
PLAIN = {"aB": 1, "rows": [{"n": 1.5, "t": "x"}, {"n": None, "t": '{"in": [1]}'}], "text": '{"in": [1]}'}
PLAIN |= {"e": {}, "one": [{"k": 1}]}
PAIR = (PLAIN, "")
def copied(value): return json.loads(json.dumps(value))
made, pair = tool(copied(PLAIN)), tool_call(copied(PLAIN), "")
assert type(made) is not dict and type(pair) is not tuple and made == PLAIN and pair == PAIR
"""
# Each says `same` of the data, and of what stands for it.
_LIBRARIES = {
    "json": "same = lambda of: json.dumps(of)",
    "orjson": "import orjson\nsame = lambda of: orjson.dumps(of)",
    "ujson": "import ujson\nsame = lambda of: ujson.dumps(of)",
    "msgpack": "import msgpack\nsame = lambda of: msgpack.packb(of)",
    "yaml": "import yaml\nsame = lambda of: (yaml.safe_dump(of), yaml.dump(of))",
    "pickle": "import pickle\nsame = lambda of: repr(pickle.loads(pickle.dumps(of)))",
    "copy": "import copy\nsame = lambda of: (copy.copy(of), copy.deepcopy(of))",
    "pandas": "import pandas\nsame = lambda of: [t.to_json() for t in (pandas.DataFrame(at(of)['rows']), "
    "pandas.json_normalize(at(of)), pandas.Series(at(of)))]",
    "polars": "import polars\nsame = lambda of: [t.write_json() for t in (polars.DataFrame(at(of)['rows']), "
    "polars.from_dicts([at(of)]), polars.DataFrame({'c': at(of)['rows']}))]",
    "pyarrow": "import pyarrow\nsame = lambda of: [pyarrow.Table.from_pylist(at(of)['rows']).to_pydict(), "
    "pyarrow.array(at(of)['rows']).type, pyarrow.array([at(of)['text']]).type]",
    "pydantic": "import pydantic\nclass Model(pydantic.BaseModel):\n"
    "    model_config = pydantic.ConfigDict(strict=True)\n    aB: int\n"
    "    rows: list[dict[str, float | str | None]]\n    text: str\n    one: list[dict[str, int]]\n"
    "Pair = pydantic.TypeAdapter(tuple[Model, str])\n"
    "same = lambda of: Pair.validate_python(of) if isinstance(of, tuple) else Model.model_validate(of)",
    "match": "def same(of):\n    match of:\n        case {'aB': number, **rest}: return number, sorted(rest)\n"
    "        case ({'aB': number}, ''): return number, 'pair'",
    "two stars": "same = lambda of: dict(**at(of))",
}


@pytest.fixture(scope="module", params=["by default", "all on"])
def book(request: pytest.FixtureRequest, server: object) -> Iterator[Notebook]:
    """With the data in it."""
    on = {"corrections": dict.fromkeys(SWITCHES, True)} if request.param == "all on" else {}
    with server.client() as client:  # type: ignore[attr-defined]
        assert isinstance(client, httpx2.Client)
        made = Notebook.made(client, **on)
        told = made.run(_DATA)
        assert told.ok, told.result
        assert made.run("at = lambda of: of[0] if isinstance(of, tuple) else of").ok
        yield made
        made.delete()


@pytest.mark.parametrize("code", _LIBRARIES.values(), ids=_LIBRARIES)
def test_it_is_taken_as_plain_data_is(book: Notebook, code: str) -> None:
    told = book.run(
        f"{code}\nfor mine, theirs in ((made, PLAIN), (pair, PAIR)):\n    assert same(mine) == same(theirs)"
    )
    assert told.ok, told.traceback
    assert not told.rules("corrected"), told.items
