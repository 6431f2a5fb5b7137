"""jupyter_kernel_test, the field's own suite for kernels, against our kernel for Node as Jupyter starts it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import jupyter_kernel_test
import pytest
from tests.runtimes.node.driving import FLAGS, KERNEL, node

NAME = "workbench-node"


@pytest.fixture(scope="module", autouse=True)
def kernelspec(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    prefix: Path = tmp_path_factory.mktemp("prefix")
    place = prefix / "share/jupyter/kernels" / NAME
    place.mkdir(parents=True)
    spec = {
        "argv": [node(), *FLAGS, str(KERNEL), "{connection_file}"],
        "display_name": "Node.js",
        "language": "javascript",
        "interrupt_mode": "message",
    }
    (place / "kernel.json").write_text(json.dumps(spec), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(prefix / "share/jupyter"))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(prefix / "runtime"))
        yield


class TestNode(jupyter_kernel_test.KernelTests):  # type: ignore[misc]
    """Every kind of sample that the suite takes."""

    kernel_name = NAME
    language_name = "javascript"
    file_extension = ".js"
    code_hello_world = "console.log('hello, world')"
    code_stderr = "console.error('test')"
    completion_samples = (
        {"text": "proce", "matches": {"process"}},
        {"text": "JSON.str", "matches": {"stringify"}},
        {"text": "functi", "matches": {"function"}},
    )
    complete_code_samples = (
        "1",
        "console.log('hello, world')",
        "function f(x) {\n  return x * 2\n}\n\n",
        "await 5",
        "import fs from 'fs'",
        "{a: 1, b: 2}",
        "1 // a comment",
        "`a ${b} c`",
        "x = /[/`'\"]/.test(y)",
    )
    incomplete_code_samples = (
        "function f(x) {",
        "f(1,",
        "`a text",
        "/* a comment",
        "if (a) {\n  b()",
        "const a = [1, 2",
        "x =>",
        "1 +",
    )
    invalid_code_samples = ("import = 7q", "let let", "a b c", "}")
    code_inspect_sample = "parseInt"
    code_generate_error = "throw new Error('x')"
    code_execute_result = (
        {"code": "1+2+3", "result": "6"},
        {"code": "[1, 2, 3].map(n => n * n)", "result": "[ 1, 4, 9 ]"},
    )
    code_display_data = (
        {"code": "display.html('<b>test</b>')", "mime": "text/html"},
        {"code": "display.png(Buffer.from('89504e470d0a1a0a', 'hex'))", "mime": "image/png"},
    )
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "range", "search")
    code_clear_output = "display.clear()"
    # There is nothing that Node would show page by page.
    test_pager = None


class TestWelcome(jupyter_kernel_test.IopubWelcomeTests):  # type: ignore[misc]
    """Who subscribes is told so, first of all."""

    kernel_name = NAME
    support_iopub_welcome = True
