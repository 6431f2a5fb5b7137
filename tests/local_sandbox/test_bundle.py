"""The helpers as one file: the same each time, for any Python from 3.9 on, with nothing but its library."""

from __future__ import annotations

import ast
import inspect
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from tests.local_sandbox.boxes import box_in

import workbench_guest.helpers
from workbench.local_sandbox import bundle, helper_source
from workbench.local_sandbox.bundle import BundleError, bundled

SOURCE = helper_source()


@pytest.fixture(scope="module")
def helper() -> ModuleType:
    module = ModuleType("composio_helper")
    exec(compile(SOURCE, "composio_helper.py", "exec"), vars(module))
    return module


def part(name: str, text: str) -> bundle._Part:
    return bundle._Part(name, text)


def test_it_is_the_same_in_every_process(tmp_path: Path) -> None:
    program = "import sys; from workbench.local_sandbox import helper_source; sys.stdout.write(helper_source())"
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed, "PYTHONPATH": str(Path(bundle.__file__).parents[2])},
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stdout == SOURCE


def test_it_is_python_3_9() -> None:
    ast.parse(SOURCE, feature_version=(3, 9))


def test_it_imports_nothing_but_pythons_own_library() -> None:
    found: set[str] = set()
    for node in ast.walk(ast.parse(SOURCE)):
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module is not None
            found.add(node.module.partition(".")[0])
    assert found <= sys.stdlib_module_names


# What came with 3.10, by its list of news. The type checker knows of everything newer, and nothing of older ones.
OF_3_10 = {
    "Concatenate", "EllipsisType", "EncodingWarning", "NoneType", "NotImplementedType", "ParamSpec",
    "TypeAlias", "TypeGuard", "UnionType", "aclosing", "aiter", "anext", "bit_count", "correlation", "covariance",
    "eventfd", "eventfd_read", "eventfd_write", "get_annotations", "hardlink_to",
    "ignore_cleanup_errors", "is_typeddict", "kw_only", "linear_regression", "orig_argv", "packages_distributions",
    "pairwise", "root_dir", "slots", "splice", "stdlib_module_names", "strict", "text_encoding",
}  # fmt: skip


def test_it_uses_nothing_of_the_library_that_came_after_3_9() -> None:
    tree = ast.parse(SOURCE)
    used = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    used |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    used |= {word.arg for node in ast.walk(tree) if isinstance(node, ast.Call) for word in node.keywords if word.arg}
    assert not used & OF_3_10


def test_no_type_with_alternatives_is_evaluated_which_3_9_could_not() -> None:
    tree = ast.parse(SOURCE)
    values = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    assert not [one for value in values for one in ast.walk(value) if isinstance(one, ast.BitOr)]


def test_it_passes_the_linter_and_the_type_checker(tmp_path: Path) -> None:
    (tmp_path / "composio_helper.py").write_text(SOURCE, encoding="utf-8")
    for command in (
        ["ruff", "check", "--isolated", "--select", "F,E9,B", "--target-version", "py39", "composio_helper.py"],
        ["mypy", "--strict", "--python-version", "3.10", "--config-file=", "--cache-dir=cache", "composio_helper.py"],
    ):
        program = Path(sys.executable).parent / command[0]
        done = subprocess.run(
            [str(program), *command[1:]], cwd=tmp_path, capture_output=True, text=True, timeout=110, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_it_has_every_helper_of_a_sandbox_with_the_same_signature(helper: ModuleType) -> None:
    assert sorted(helper.__all__) == sorted(workbench_guest.helpers.__all__)
    for name in helper.__all__:
        there: Any = getattr(workbench_guest.helpers, name)
        assert inspect.signature(getattr(helper, name)) == inspect.signature(there), name
        assert inspect.getdoc(getattr(helper, name))


def test_it_has_no_credential_and_no_address_in_it() -> None:
    assert not [word for word in ("wbk_", "wbt_", "http://127", "composio.dev") if word in SOURCE]


def test_importing_it_asks_for_nothing_and_says_nothing(tmp_path: Path) -> None:
    ran = box_in(tmp_path, {}).run("answer = 1")
    assert (ran.printed, ran.complaint) == ("", "")


def test_modules_that_share_a_name_are_refused() -> None:
    with pytest.raises(BundleError, match="b and a both define f"):
        bundled([part("a", "def f(): ..."), part("b", "f = 1")])


def test_a_name_that_nobody_has_is_refused() -> None:
    with pytest.raises(BundleError, match="nobody defines \\['g'\\]"):
        bundled([part("a", "from workbench_guest.helpers.b import g")])


def test_what_cannot_be_put_into_one_file_is_refused() -> None:
    with pytest.raises(BundleError, match="a renames"):
        part("a", "from workbench_guest.helpers.b import g as h")
    with pytest.raises(BundleError, match="a imports a module of the guest's inside"):
        part("a", "def f():\n    from workbench_guest.helpers.b import g\n")
