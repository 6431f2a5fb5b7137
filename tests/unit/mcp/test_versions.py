"""Which versions meet what was asked for."""

from __future__ import annotations

import pytest
from packaging.specifiers import SpecifierSet

from workbench.errors import InvalidRequest
from workbench.mcp.tools.sandbox_versions import is_met

FOUND = ["1", "1.0", "1.0.0", "1.2", "1.2.0", "1.2.3", "1.10", "2.0", "2.1.3.1", "10.0.1", "2024.1"]
WANTED = ["==1.0", ">=1.2", ">1.2", "<=1.2", "<2", "!=1.0", "~=1.2", "~=1.2.0", "==1.*", "!=1.2.*", ">=1,<2", "==1.2.3"]


@pytest.mark.parametrize("wanted", WANTED)
def test_numbers_compare_as_package_tools_compare_them(wanted: str) -> None:
    for found in FOUND:
        assert is_met(wanted, found) is (found in SpecifierSet(wanted)), found


@pytest.mark.parametrize("wanted", ["", "*", "latest", "2.0rc1", "==2.0rc1", "!=1.0", " == 2.0rc1 "])
def test_a_version_before_its_time_is_there_for_who_names_it_or_wants_any(wanted: str) -> None:
    assert is_met(wanted, "2.0rc1")


def test_a_version_before_its_time_meets_no_comparison() -> None:
    assert not is_met(">=1.0", "2.0rc1")
    assert not is_met("2.0", "2.0rc1")


@pytest.mark.parametrize(("wanted", "found"), [("==2.0", "2.0+cpu"), ("2.0", "2.0.post1"), (">=2", "2.0+cpu")])
def test_another_build_of_a_version_is_that_version(wanted: str, found: str) -> None:
    assert is_met(wanted, found)


@pytest.mark.parametrize(
    "wanted", ["newest please", ">=", "^1.2", "~=1", ">=1.*", ">=1.0rc1", ">99,nonsense!", ",", "=1"]
)
def test_what_is_no_version_is_told(wanted: str) -> None:
    with pytest.raises(InvalidRequest, match="not a version"):
        is_met(wanted, "1.0")
