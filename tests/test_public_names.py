"""What `import workbench` gives is there on purpose."""

from __future__ import annotations

import types

import workbench


def test_the_package_shows_what_it_says_and_nothing_else() -> None:
    shown = {name for name, value in vars(workbench).items() if not isinstance(value, types.ModuleType)}
    assert {name for name in shown if not name.startswith("__")} | {"__version__"} == set(workbench.__all__)
