"""Variables from one memory into another, as two interpreters have them: packed in the one, unpacked in the other."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import types
from pathlib import Path
from typing import Any

import pytest
from tests.unit.workbench_guest.kernel.kinds_of_values import IMPORTS, KINDS, LEFT, LEFT_WHEN_LOADED

from workbench_guest.kernel import carry

SOURCE = Path(carry.__file__).resolve().parents[2]
# As in a kernel: what cells define lives in the module that is called __main__.
_DRIVER = """
import json, sys, types
order = json.load(sys.stdin)
main = types.ModuleType("__main__")
sys.modules["__main__"], space = main, main.__dict__
from workbench_guest.kernel import carry
before = {*space, "__builtins__"}
exec(compile(order["cell"], "cell", "exec"), space)
if order["pack"]:
    report = carry.pack({name: value for name, value in space.items() if name not in before}, order["path"])
else:
    report = carry.unpack(order["path"], space)
checks = {}
for check in order["checks"]:
    try:
        checks[check] = repr(eval(check, space))
    except Exception as problem:
        checks[check] = repr(problem)
print("\\n" + json.dumps([report, checks, sorted(name for name in sys.modules if name == "dill")]))
"""


def interpreter(path: Path, *, pack: bool, cell: str = "", checks: tuple[str, ...] = ()) -> list[Any]:
    """Run it to its end: the report, the checks, and whether dill was imported."""
    order = {"pack": pack, "path": str(path), "cell": cell, "checks": checks}
    done = subprocess.run(
        [sys.executable, "-c", _DRIVER],
        input=json.dumps(order),
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return told


def carried(path: Path, cell: str, *checks: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, str]]:
    """What the cell defines, through both: the two reports, and what the checks give in the second."""
    packed, _, _ = interpreter(path, pack=True, cell=cell)
    unpacked, told, _ = interpreter(path, pack=False, checks=checks)
    assert not path.exists()
    return packed, unpacked, told


Copy = tuple[dict[str, Any], dict[str, Any], dict[str, str]]


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """Everything at once, so that each is carried beside all the others."""
    every = [*KINDS.values(), *LEFT.values(), *LEFT_WHEN_LOADED.values()]
    cell = "\n".join([IMPORTS, *(kind.cell for kind in every)])
    checks = ("globals().update(x=5)", *(kind.expected for kind in KINDS.values()))
    return carried(tmp_path_factory.mktemp("carry") / "variables", cell, *checks)


@pytest.mark.parametrize("kind", KINDS)
def test_this_arrives_and_works(kind: str, copy: Copy) -> None:
    assert copy[2][KINDS[kind].expected] == "True"


@pytest.mark.parametrize("name", LEFT)
def test_this_stays_and_is_told_with_its_reason(name: str, copy: Copy) -> None:
    reason = copy[0]["not_carried"][name]
    assert LEFT[name].expected in reason
    assert len(reason) <= carry.MOST_REASON
    assert name not in copy[1]["carried"]


@pytest.mark.parametrize("name", LEFT_WHEN_LOADED)
def test_this_cannot_be_loaded_and_is_told_with_its_reason(name: str, copy: Copy) -> None:
    assert name in copy[0]["carried"]
    assert copy[1]["not_carried"][name] == LEFT_WHEN_LOADED[name].expected


def test_every_name_is_told(copy: Copy) -> None:
    packed, unpacked, _ = copy
    assert packed["not_carried"].keys() == LEFT.keys()
    assert unpacked["not_carried"].keys() == {*LEFT_WHEN_LOADED, "holds"}
    assert {*packed["carried"]} == {*unpacked["carried"], *LEFT_WHEN_LOADED}


def test_plain_values_need_no_dill_on_either_side(tmp_path: Path) -> None:
    path = tmp_path / "variables"
    _, _, modules = interpreter(path, pack=True, cell="x = 1; table = {'a': [1.5, 'text']}")
    assert modules == []
    _, _, modules = interpreter(path, pack=False)
    assert modules == []


def test_the_file_is_for_its_owner_only_and_never_one_that_was_there(tmp_path: Path) -> None:
    path = tmp_path / "variables"
    carry.pack({"a": 1}, str(path))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    with pytest.raises(FileExistsError):
        carry.pack({"a": 1}, str(path))
    link = tmp_path / "link"
    link.symlink_to(path)
    with pytest.raises(OSError, match="symbolic links"):
        carry.unpack(str(link), {})
    space: dict[str, Any] = {}
    assert carry.unpack(str(path), space) == {"carried": ["a"], "not_carried": {}, "more": 0}
    assert space == {"a": 1}
    with pytest.raises(FileNotFoundError):
        carry.unpack(str(path), {})


def test_what_is_bound_already_is_replaced_and_the_rest_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "variables"
    carry.pack({"a": [1]}, str(path))
    space: dict[str, Any] = {"a": "old", "b": "kept"}
    carry.unpack(str(path), space)
    assert space == {"a": [1], "b": "kept"}


def test_on_a_full_disk_what_fits_is_carried_and_no_half_frame_is_left(tmp_path: Path) -> None:
    full = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))\n"
    variables = "a = 'a' * 50_000; b = list(range(90_000)); c = lambda: 'c'; d = 'd' * 150_000; e = 'e' * 50_000"
    check = "(a, c(), e) == ('a' * 50_000, 'c', 'e' * 50_000)"
    packed, unpacked, told = carried(tmp_path / "variables", full + variables, check)
    assert packed["not_carried"] == dict.fromkeys("bd", "OSError: [Errno 27] File too large")
    assert {*unpacked["carried"]} == {*packed["carried"]} == {"a", "c", "e", "resource"}
    assert told[check] == "True"


def test_of_a_file_that_was_cut_what_is_whole_arrives(tmp_path: Path) -> None:
    path = tmp_path / "variables"
    carry.pack({name: [name] for name in "abc"}, str(path))
    os.truncate(path, path.stat().st_size - 1)
    space: dict[str, Any] = {}
    assert carry.unpack(str(path), space)["carried"] == ["a", "b"]
    assert space == {"a": ["a"], "b": ["b"]}


def test_the_file_is_gone_whatever_loading_does(tmp_path: Path) -> None:
    path = tmp_path / "variables"
    cell = "import os\nclass Ends:\n def __setstate__(self, state): os._exit(0)\nends = Ends(); ends.a = 1"
    interpreter(path, pack=True, cell=cell)
    with pytest.raises(IndexError):
        interpreter(path, pack=False)
    assert not path.exists()


def test_names_are_bounded_in_number_and_length_and_only_those_that_python_can_say(tmp_path: Path) -> None:
    path = tmp_path / "variables"
    odd = {"no name": 1, "": 2, "\ud800": 3, "x" * 10_000: 4, "a\nb": 5}
    many = {f"n{number}": number for number in range(carry.MOST_NAMES)}
    report = carry.pack({**odd, **many}, str(path))
    assert len(report["carried"]) == carry.MOST_NAMES - len(odd)
    assert len(report["not_carried"]) == len(odd)
    assert report["more"] == len(odd)
    assert len(json.dumps(report, ensure_ascii=False).encode()) < 500_000
    assert carry.unpack(str(path), {})["carried"] == report["carried"]


def test_packing_takes_nothing_from_the_names_and_leaves_no_descriptor_open(tmp_path: Path) -> None:
    names = {"a": [1], "module": types, "function": carried}
    before = dict(names)
    descriptors = len(os.listdir("/proc/self/fd"))
    carry.pack(names, str(tmp_path / "variables"))
    carry.unpack(str(tmp_path / "variables"), {})
    assert names == before
    assert len(os.listdir("/proc/self/fd")) == descriptors
