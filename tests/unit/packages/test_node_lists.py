"""Which packages of Node may be installed, and what is said of those that may not."""

from __future__ import annotations

import pytest

from workbench.contracts.packages import PackageLists, rule_of
from workbench.errors import PackageRefused
from workbench.model.packages import PackagePolicy, PackageRule
from workbench.packages.naming import shipped
from workbench.packages.node_lists import BUILT_IN, NodeLists, parsed

SUPPORTED, POPULAR, ANY, OFF = (
    PackagePolicy.SUPPORTED, PackagePolicy.POPULAR, PackagePolicy.ANY, PackagePolicy.OFF,
)  # fmt: skip
LISTS: PackageLists = NodeLists()


def refused(module: str, policy: PackagePolicy = SUPPORTED, lists: PackageLists = LISTS) -> tuple[PackageRule, str]:
    with pytest.raises(PackageRefused) as problem:
        lists.providing(module, policy)
    return rule_of(problem.value), problem.value.message


@pytest.mark.parametrize(
    ("module", "package"),
    [
        ("lodash", "lodash"),
        ("lodash/fp", "lodash"),
        ("@aws-sdk/client-s3", "@aws-sdk/client-s3"),
        ("@babel/core/lib/index.js", "@babel/core"),
        ("chart.js/auto", "chart.js"),
        ("JSONStream", "JSONStream"),
    ],
)
def test_the_package_of_an_import_is_how_it_begins(module: str, package: str) -> None:
    assert LISTS.providing(module, SUPPORTED) == package


@pytest.mark.parametrize(
    ("typed", "meant"), [("loadash", "lodash"), ("experss", "express"), ("axois", "axios"), ("chee-rio", "cheerio")]
)
def test_a_name_that_is_mistyped_is_refused_with_the_nearest(typed: str, meant: str) -> None:
    rule, message = refused(typed)
    assert rule is PackageRule.NOT_SUPPORTED
    assert message == f"no supported package is called {typed!r}; did you mean {meant!r}?"


@pytest.mark.parametrize(
    "module", ["fs", "node:fs", "fs/promises", "node:sqlite", "./util", "../x", "/abs/x", "#inner"]
)
def test_modules_of_nodes_own_and_files_are_never_installed(module: str) -> None:
    for policy in (SUPPORTED, POPULAR, ANY):
        assert refused(module, policy)[0] is PackageRule.NOT_SUPPORTED


def test_names_of_ones_own_files_are_not_looked_for_on_npm() -> None:
    assert refused("utils", ANY)[1].endswith("write './utils'")


@pytest.mark.parametrize(
    "requirement",
    ["lodash@file:../x", "lodash@npm:evil", "git+https://a/b.git", "a/b", "x.tgz", "lodash@1.tgz", "-g", "--prefix=/",
     "https://x/y.tgz", "../lodash", "lodash@a/b", "", "@scope", "x y", "lodash@-g", "a" * 215, "lodash\n", ".bin"],
)  # fmt: skip
def test_only_names_with_versions_are_requirements(requirement: str) -> None:
    with pytest.raises(PackageRefused, match="is not a name on npm"):
        parsed(requirement)
    with pytest.raises(PackageRefused):
        LISTS.admitted(requirement, ANY)


@pytest.mark.parametrize(
    "requirement", ["lodash", "chalk@4", "@babel/core@^7.2.0", "semver@>=7 <8", "typescript@latest"]
)
def test_versions_stay_with_their_names(requirement: str) -> None:
    assert LISTS.admitted(requirement, SUPPORTED) == requirement
    assert str(parsed(requirement)) == requirement


def test_each_policy_admits_more_than_the_one_before() -> None:
    popular, rare = "abstract-leveldown", "some-name-that-nobody-has-listed"
    assert refused("lodash", OFF)[0] is PackageRule.OFF
    assert refused(popular)[0] is PackageRule.NOT_SUPPORTED
    assert LISTS.providing(popular, POPULAR) == popular
    assert refused(rare, POPULAR)[0] is PackageRule.NOT_SUPPORTED
    assert LISTS.providing(rare, ANY) == rare


def test_what_is_of_no_use_without_its_scripts_is_refused_with_what_serves_instead() -> None:
    for policy in (SUPPORTED, ANY):
        rule, message = refused("puppeteer", policy)
        assert rule is PackageRule.SCRIPTS_SKIPPED
        assert "puppeteer-core" in message


def test_the_operators_lists_win() -> None:
    lists = NodeLists(allow=["rare-one", "puppeteer", "utils"], deny=["lodash"])
    assert [lists.providing(name, SUPPORTED) for name in ("rare-one", "puppeteer", "utils")]
    assert refused("lodash", ANY, lists)[1] == "lodash is not allowed by the operator of this workbench"
    assert "lodash" not in refused("loadash", SUPPORTED, lists)[1]
    assert refused("rare-one", OFF, lists)[0] is PackageRule.OFF


def test_the_shipped_names_are_names_and_many_and_no_look_alikes() -> None:
    supported, popular = shipped("node_supported.txt"), shipped("node_popular.txt")
    assert len(supported) > 1500
    assert not supported & popular
    assert not (supported | popular) & {"loadash", "uglifyjs", "path2", "findup"}
    assert not (supported | popular) & BUILT_IN
    for name in supported | popular:
        assert str(parsed(name)) == name
