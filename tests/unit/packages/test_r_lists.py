"""Which packages of R may be installed, and what is said of those that may not."""

from __future__ import annotations

import pytest

from workbench.contracts.packages import PackageLists, rule_of
from workbench.errors import PackageRefused
from workbench.model.packages import PackagePolicy, PackageRule
from workbench.packages.naming import shipped
from workbench.packages.r_lists import RLists

SUPPORTED, ANY, OFF = PackagePolicy.SUPPORTED, PackagePolicy.ANY, PackagePolicy.OFF
LISTS: PackageLists = RLists()


def refused(module: str, policy: PackagePolicy = SUPPORTED, lists: PackageLists = LISTS) -> tuple[PackageRule, str]:
    with pytest.raises(PackageRefused) as problem:
        lists.providing(module, policy)
    return rule_of(problem.value), problem.value.message


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("dplyr", "r-cran-dplyr"),
        ("data.table", "r-cran-data.table"),
        ("MASS", "r-cran-mass"),
        ("DESeq2", "r-bioc-deseq2"),
        ("r-cran-dplyr", "r-cran-dplyr"),
    ],
)
def test_a_package_is_called_as_the_distribution_calls_it(module: str, package: str) -> None:
    assert LISTS.providing(module, SUPPORTED) == package
    assert LISTS.admitted(package, SUPPORTED) == package


def test_a_name_that_is_mistyped_is_refused_with_the_nearest() -> None:
    rule, message = refused("dplry")
    assert rule is PackageRule.NOT_SUPPORTED
    assert message.endswith("did you mean 'dplyr'?")


def test_what_the_distribution_lacks_is_refused_with_what_serves_instead() -> None:
    assert refused("xgboost")[1].endswith("use gbm or ranger")


@pytest.mark.parametrize("module", ["stats", "base", "grDevices"])
def test_parts_of_r_itself_are_never_installed(module: str) -> None:
    assert refused(module, ANY)[0] is PackageRule.NOT_SUPPORTED


@pytest.mark.parametrize(
    "name", ["../x", "--opt", "-y", "a b", "", "x", "9lives", "a_b", "dplyr.", "a/b", "dplyr=1", "a\n"]
)
def test_only_what_r_allows_is_a_name(name: str) -> None:
    assert refused(name, ANY)[1].endswith("is not a name of an R package")


def test_the_operators_lists_and_the_policy_count() -> None:
    lists = RLists(allow=["XGBoost"], deny=["r-cran-dplyr"])
    assert lists.providing("xgboost", SUPPORTED) == "r-cran-xgboost"
    assert "operator" in refused("dplyr", ANY, lists)[1]
    assert LISTS.providing("notInDebian12", ANY) == "r-cran-notindebian12"
    assert refused("dplyr", OFF)[0] is PackageRule.OFF


def test_the_shipped_names_are_those_of_packages() -> None:
    names = shipped("r_debian12.txt")
    assert len(names) > 1000
    assert all(LISTS.admitted(name, SUPPORTED) for name in names)
