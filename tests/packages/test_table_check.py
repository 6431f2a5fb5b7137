"""What scripts/check-package-table calls a module of a wheel. The checks themselves need the index: run by hand."""

from __future__ import annotations

import pytest
from tests.packages.table_check import has_module

FILES = [
    "yaml/__init__.py",
    "yaml/_yaml.cpython-311-x86_64-linux-gnu.so",
    "six.py",
    "google/cloud/storage/__init__.py",
    "fast.cpython-311-x86_64-linux-gnu.so",
    "plain.abi3.so",
    "data_only/names.txt",
    "yaml-6.0.dist-info/RECORD",
]


@pytest.mark.parametrize("module", ["yaml", "six", "google.cloud.storage", "google.cloud", "fast", "plain"])
def test_a_package_a_file_an_extension_and_a_namespace_are_modules(module: str) -> None:
    assert has_module(FILES, module)


@pytest.mark.parametrize("module", ["yam", "sixx", "google.cloud.storag", "data_only", "fas", "cloud.storage"])
def test_neither_part_of_a_name_nor_a_folder_of_data_is_a_module(module: str) -> None:
    assert not has_module(FILES, module)
