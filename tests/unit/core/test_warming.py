"""Which code asks for a warm interpreter."""

from __future__ import annotations

import time

import pytest

from workbench.core.warming import warm_for_code, warm_for_packages


@pytest.mark.parametrize(
    "code",
    [
        "import torch",
        "x = 1\nimport torch.nn as nn",
        "from torch import nn",
        "from torch.utils.data import DataLoader",
        "import numpy as np, torch as t",
        "def f():\n    import torch",
        "x = 1; import torch",
        "try:\n\timport os, json, torch\nexcept ImportError: pass",
    ],
)
def test_an_import_anywhere_asks_for_it(code: str) -> None:
    assert warm_for_code(code) == "torch"


@pytest.mark.parametrize(
    "code",
    ["", "import pandas", "# import torch", "import torchvision", "torch = 1", "x = 'a'; y = 'import torch'",
     "from torchlike import torch", "import a.torch", "print('import torch')", "import xtorch"],
)  # fmt: skip
def test_what_only_looks_like_one_does_not(code: str) -> None:
    assert warm_for_code(code) == ""


def test_of_several_texts_any_may_ask() -> None:
    assert warm_for_code("x = 1", "import torch") == "torch"


@pytest.mark.parametrize("hostile", ["; " * 300_000, "import " + "a, " * 300_000, " " * 900_000, "torch; " * 100_000])
def test_code_of_any_shape_is_looked_at_in_no_time(hostile: str) -> None:
    began = time.process_time()
    warm_for_code(hostile)
    assert time.process_time() - began < 1.0


def test_packages_ask_by_name() -> None:
    assert warm_for_packages(["pandas", "torch==2.13.0"]) == "torch"
    assert warm_for_packages(["torch"]) == "torch"
    assert warm_for_packages(["Torch>=2"]) == "torch"
    assert warm_for_packages(["torchvision", "tabulate"]) == ""
