"""The lists themselves: well-formed, sorted, and not at odds with each other."""

from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest

import workbench.packages
from workbench.model.packages import PackagePolicy
from workbench.packages.python_lists import PythonLists
from workbench.packages.python_tables import normalised, parents, popular, tables

FOLDER = Path(workbench.packages.__file__).parent / "lists" / "python"
NAME = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
MODULE = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")
# As many processor seconds as a load may take on a machine that is busy with other tests; alone it takes 0.02.
LOAD_CPU_S = 0.2


def lines(name: str) -> list[str]:
    text = (FOLDER / f"{name}.txt").read_text(encoding="utf-8")
    assert text.endswith("\n")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def test_the_reviewed_table_has_at_least_five_hundred_rows() -> None:
    assert len(tables().distributions) >= 500


@pytest.mark.parametrize("name", ["supported", "popular", "generic", "wrong"])
def test_a_list_is_sorted_and_has_no_row_twice(name: str) -> None:
    keys = [line.split()[0] for line in lines(name)]
    assert keys == sorted(set(keys))


def test_every_row_has_a_normalised_name_and_dotted_modules() -> None:
    for line in lines("supported"):
        name, *modules = line.split()
        assert NAME.fullmatch(name), line
        assert modules, line
        assert modules == sorted(set(modules)), line
        assert modules == ["-"] or all(MODULE.fullmatch(module) for module in modules), line


def test_no_module_is_claimed_by_two_rows() -> None:
    claims = [module for modules in tables().distributions.values() for module in modules]
    assert len(claims) == len(set(claims))


def test_no_row_claims_what_is_within_a_module_of_another() -> None:
    known = tables().modules
    for module, distribution in known.items():
        for parent in list(parents(module))[1:]:
            assert known.get(parent, distribution) == distribution, f"{module} is within {parent}"


def test_no_module_of_the_table_is_generic_or_refused_or_a_part_of_python() -> None:
    known = tables()
    for module in known.modules:
        top = module.partition(".")[0]
        assert top not in known.generic, module
        assert top not in sys.stdlib_module_names, module
        assert not any(parent in known.refused_modules for parent in parents(module)), module


def test_no_distribution_of_the_table_is_refused_or_a_wrong_name() -> None:
    known = tables()
    assert not known.distributions.keys() & known.refused_distributions.keys()
    assert not known.distributions.keys() & known.wrong.keys()


def test_a_wrong_name_leads_to_a_right_one() -> None:
    known = tables()
    for asked, wrong in known.wrong.items():
        assert asked == normalised(asked)
        assert wrong.right is None or wrong.right in known.distributions or wrong.right in known.refused_distributions
        assert wrong.right != asked


def test_every_refusal_ends_in_no_full_stop_and_names_distributions_as_the_index_does() -> None:
    known = tables()
    reasons = [one.reason for one in known.refused_modules.values()] + [one.reason for one in known.wrong.values()]
    for reason in reasons:
        assert reason[0].islower(), reason
        assert reason[-1] not in ".!;", reason
    for name in known.refused_distributions:
        assert NAME.fullmatch(name), name


def test_there_are_more_than_a_hundred_generic_names_and_all_are_modules() -> None:
    generic = tables().generic
    assert len(generic) > 100
    assert all(MODULE.fullmatch(name) for name in generic)
    assert {"utils", "config", "main", "helpers", "common", "data", "models", "api", "tests"} <= generic


def test_popular_names_are_normalised_and_thousands() -> None:
    assert 3_000 <= len(popular()) <= 5_000
    assert all(NAME.fullmatch(name) for name in popular())


@pytest.mark.parametrize(
    "name",
    [
        "jwt",
        "docx",
        "dotenv",
        "fitz",
        "telegram",
        "pyyml",
        "git-python",
        "beautifulsoup",
        "google-oauth",
        "sklearn",
        "bs4",
    ],
)
def test_what_is_popular_by_error_alone_is_not_on_the_list(name: str) -> None:
    assert name not in popular()


def test_popular_names_are_neither_refused_nor_wrong_nor_generic() -> None:
    known = tables()
    assert not popular() & known.wrong.keys()
    assert not popular() & known.refused_distributions.keys()
    assert not {name.replace("-", "_") for name in popular() - known.distributions.keys()} & known.generic


def test_nothing_is_read_before_it_is_asked_for_and_then_quickly() -> None:
    tables.cache_clear()
    popular.cache_clear()
    lists = PythonLists(allow=["acme"])
    assert not tables.cache_info().currsize
    began = time.process_time()
    lists.providing("tabulate", PackagePolicy.POPULAR)
    lists.providing("editables", PackagePolicy.POPULAR)
    assert time.process_time() - began < LOAD_CPU_S


def test_names_are_normalised_as_the_index_does_it() -> None:
    assert normalised("Ruamel__.YAML") == "ruamel-yaml"
    assert normalised("plain") == "plain"
