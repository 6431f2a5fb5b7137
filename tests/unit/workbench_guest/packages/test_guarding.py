"""Whether code has its own answer to an import that fails."""

from __future__ import annotations

import linecache
import sys
import types

import pytest

from workbench_guest.packages import guarding

_SEEN: list[bool] = []


def look() -> None:
    """Called where an import would be."""
    _SEEN.append(guarding.is_guarded(sys._getframe(1)))


def guarded(source: str) -> bool:
    name = f"/tmp/cell-{len(linecache.cache)}.py"
    linecache.cache[name] = (len(source), None, source.splitlines(keepends=True), name)
    _SEEN.clear()
    module = types.ModuleType("__main__")
    module.__dict__["look"] = look
    exec(compile(source, name, "exec"), module.__dict__)
    (told,) = _SEEN
    return told


@pytest.mark.parametrize(
    "source",
    [
        "try:\n    look()\nexcept ImportError:\n    pass",
        "try:\n    look()\nexcept ModuleNotFoundError:\n    pass",
        "try:\n    look()\nexcept Exception as e:\n    pass",
        "try:\n    look()\nexcept:\n    pass",
        "try:\n    look()\nexcept (KeyError, ImportError):\n    pass",
        "try:\n    look()\nexcept* ImportError:\n    pass",
        "try:\n    if True:\n        look()\nexcept ImportError:\n    pass",
        "from contextlib import suppress\nwith suppress(ImportError):\n    look()",
        "import contextlib\nwith contextlib.suppress(KeyError, Exception):\n    look()",
        "def f():\n    look()\ntry:\n    f()\nexcept ImportError:\n    pass",
        "mine = ImportError\ntry:\n    look()\nexcept mine:\n    pass",
    ],
)
def test_an_answer_of_the_codes_own_is_seen(source: str) -> None:
    assert guarded(source)


@pytest.mark.parametrize(
    "source",
    [
        "look()",
        "try:\n    look()\nexcept ValueError:\n    pass",
        "try:\n    look()\nfinally:\n    pass",
        "try:\n    pass\nexcept ImportError:\n    pass\nlook()",
        "try:\n    raise ImportError\nexcept ImportError:\n    look()",
        "try:\n    pass\nexcept ImportError:\n    pass\nelse:\n    look()",
        "from contextlib import suppress\nwith suppress(KeyError):\n    look()",
        "import io\nwith io.StringIO():\n    look()",
        "class ImportError(Exception):\n    pass\ntry:\n    look()\nexcept ImportError:\n    pass",
    ],
)
def test_what_only_looks_alike_is_none(source: str) -> None:
    assert not guarded(source)


def test_code_whose_source_nobody_has_is_not_guarded() -> None:
    _SEEN.clear()
    exec("look()", {"look": look})
    assert _SEEN == [False]
