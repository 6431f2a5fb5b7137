"""What `import workbench` gives is there on purpose, and costs nothing until it is used."""

from __future__ import annotations

import subprocess
import sys
import types

import workbench


def test_every_name_is_there_and_is_what_the_sdk_says() -> None:
    import workbench.client

    for name in set(workbench.__all__) - {"__version__", "WorkbenchError"}:
        assert getattr(workbench, name) is getattr(workbench.client, name)
    assert dir(workbench) == sorted(workbench.__all__)


def test_the_package_shows_what_it_says_and_nothing_else() -> None:
    shown = {name for name, value in vars(workbench).items() if not isinstance(value, types.ModuleType)}
    # `annotations` is what `from __future__` leaves behind.
    own = {name for name in shown if not name.startswith("_")} - {"annotations"}
    assert own <= set(workbench.__all__)


def test_a_name_that_there_is_not_is_an_attribute_error() -> None:
    assert not hasattr(workbench, "Workbenches")


def test_importing_the_package_loads_no_http_client() -> None:
    program = (
        "import workbench, sys; print([n for n in ('httpx2', 'pydantic', 'workbench.client') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.strip() == "[]"
