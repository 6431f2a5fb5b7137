"""The package as a whole: light, for old Pythons, and the same by every way to get at it."""

from __future__ import annotations

import ast
import inspect
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.unit.workbench_guest.helpers.answering import PATIENCE_S, says
from tests.unit.workbench_guest.helpers.conftest import Serve

from workbench_guest import helpers

FOLDER = Path(helpers.__file__).parent
IMPORTABLE = FOLDER.parent / "importable"
SIGNATURES = {
    "run_composio_tool": "(tool_slug, arguments=None, retry_params=None, print_schema_for_tool=True, *, account=None)",
    "invoke_llm": "(query, reasoning_effort=None)",
    "web_search": "(query)",
    "proxy_execute": "(method, endpoint, toolkit, query_params=None, body=None, headers=None)",
    "upload_local_file": "(*file_paths)",
    "smart_file_extract": "(sandbox_file_path, show_preview=True)",
    "get_mount_file_url": "(file_path)",
    "get_mount_file_s3_key": "(file_path)",
    "print_json_structure": "(value)",
}


@pytest.mark.parametrize("name", helpers.__all__)
def test_a_helper_has_the_arguments_that_everyone_knows_and_says_what_they_are(name: str) -> None:
    helper = getattr(helpers, name)
    signature = inspect.signature(helper)
    bare = [one.replace(annotation=inspect.Parameter.empty) for one in signature.parameters.values()]
    assert str(inspect.Signature(bare)) == SIGNATURES[name]
    told = inspect.getdoc(helper) or ""
    assert "Args:" in told
    for parameter in signature.parameters:
        assert f"{parameter}: " in told


@pytest.mark.parametrize(
    "path", [*FOLDER.glob("*.py"), *IMPORTABLE.glob("*.py"), FOLDER.parent / "__init__.py"], ids=str
)
def test_the_code_is_for_python_3_9_and_needs_nothing_that_is_installed(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"), feature_version=(3, 9))
    imported = {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    imported |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    ours = ("workbench_guest", "workbench_guest.helpers")
    assert not [name for name in imported if name.split(".")[0] not in sys.stdlib_module_names
                and not (name in ours or name.startswith("workbench_guest.helpers."))]  # fmt: skip
    # New in 3.10, and no syntax.
    assert not [
        node for node in ast.walk(tree) if isinstance(node, ast.keyword) and node.arg in ("slots", "kw_only", "strict")
    ]


def python(code: str, **environment: str) -> tuple[str, str]:
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": str(IMPORTABLE), **environment}, text=True,
        capture_output=True, timeout=PATIENCE_S, check=False, cwd="/",
    )  # fmt: skip
    return done.stdout.strip(), done.stderr.strip().rpartition("\n")[2]


@pytest.mark.parametrize("module", ["composio_helper", "workbench_helper"])
def test_a_script_imports_them_and_asks(serve: Serve, module: str) -> None:
    server = serve(says("an answer"))
    assert python(f"from {module} import *; print(invoke_llm('x'))") == ("('an answer', '')", "")
    assert server.arguments["query"] == "x"


def test_the_import_leaves_the_path_as_it_was_and_loads_no_heavy_part() -> None:
    code = (
        "import sys; before = list(sys.path); import composio_helper, workbench_helper\n"
        "heavy = {'zipfile', 'difflib', 'http', 'urllib.request', 'ssl', 'asyncio', 'hashlib'} & set(sys.modules)\n"
        "print(sys.path == before, sorted(heavy), composio_helper.invoke_llm is workbench_helper.invoke_llm)\n"
        "import workbench_guest.helpers.archive"
    )
    assert python(code) == ("True [] True", "")


@pytest.mark.parametrize("value", ["false", "False", " FALSE "])
def test_without_tool_execution_three_are_missing_and_the_import_says_why(value: str) -> None:
    code = "import composio_helper as c; print(*c.__all__); print(*[name for name in dir(c) if hasattr(c, name)])"
    listed, error = python(code, WORKBENCH_TOOL_EXECUTION=value)
    assert error == ""
    offered, there = (set(line.split()) for line in listed.splitlines())
    assert offered == set(helpers.__all__) - set(helpers.NEEDING_TOOL_EXECUTION)
    assert not there & set(helpers.NEEDING_TOOL_EXECUTION)
    for name in helpers.NEEDING_TOOL_EXECUTION:
        _, error = python(f"from workbench_helper import {name}", WORKBENCH_TOOL_EXECUTION=value)
        assert error == f"ImportError: workbench_helper has no {name}: tool execution is switched off for this session"
    assert "has no attribute 'nonsense'" in python("import composio_helper; composio_helper.nonsense")[1]


@pytest.mark.parametrize("value", ["true", "", "1"])
def test_any_other_word_takes_nothing_away(value: str) -> None:
    assert set(helpers.offered({helpers.TOOL_EXECUTION_VARIABLE: value})) == set(helpers.__all__)
