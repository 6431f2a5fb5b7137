"""jupyter_kernel_test, the field's own suite for kernels, against ours as Jupyter starts it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import jupyter_kernel_test
import pytest
from tests.host.conftest import shared_settings
from tests.host.support import output_of, workbench

from workbench.settings import Settings

__all__ = ["shared_settings"]
_SHOW = "from IPython.display import HTML, display; display(HTML('<b>test</b>'))"


@pytest.fixture(scope="module", autouse=True)
def kernelspec(shared_settings: Settings, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What `workbench kernel --install` writes, where Jupyter looks first."""
    prefix: Path = tmp_path_factory.mktemp("prefix")
    assert output_of(workbench(shared_settings, "kernel", "--install", "--prefix", str(prefix)))[0] == 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(prefix / "share/jupyter"))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(prefix / "runtime"))
        for name, value in shared_settings.to_env().items():
            patch.setenv(name, value)
        yield


class TestOurKernel(jupyter_kernel_test.KernelTests):  # type: ignore[misc]
    """The samples with which the suite tests the stock kernel itself, every kind of them."""

    kernel_name = "workbench"
    language_name = "python"
    file_extension = ".py"
    code_hello_world = "print('hello, world')"
    code_stderr = "import sys; print('test', file=sys.stderr)"
    completion_samples = ({"text": "zi", "matches": {"zip"}}, {"text": "impor", "matches": {"import"}})
    complete_code_samples = ("1", "print('hello, world')", "def f(x):\n  return x*2\n\n\n")
    incomplete_code_samples = ("print('''hello", "def f(x):\n  x*2")
    invalid_code_samples = ("import = 7q",)
    code_page_something = "zip?"
    code_generate_error = "raise"
    code_execute_result = (
        {"code": "1+2+3", "result": "6"},
        {"code": "[n*n for n in range(1, 4)]", "result": "[1, 4, 9]"},
    )
    code_display_data = ({"code": _SHOW, "mime": "text/html"},)
    code_history_pattern = "1?2*"
    supported_history_operations = ("tail", "search")
    code_inspect_sample = "zip"
    code_clear_output = "from IPython.display import clear_output; clear_output()"


class TestOurWelcome(jupyter_kernel_test.IopubWelcomeTests):  # type: ignore[misc]
    """Who subscribes is told so, first of all."""

    kernel_name = "workbench"
    support_iopub_welcome = True
