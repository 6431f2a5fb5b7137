"""What of a ranking is popular in its own right."""

from __future__ import annotations

from tests.packages.popular_names import popular_names

from workbench.packages.python_tables import tables

FILLER = [f"filler-package-{number}" for number in range(200)]


def names_of(*last: str) -> list[str]:
    ranking = ["requests", "gitpython", "nodeenv", "toml", *FILLER, *last]
    return [name for name in popular_names(ranking, tables()) if name not in FILLER]


def test_what_is_far_up_is_kept() -> None:
    assert names_of() == ["gitpython", "nodeenv", "requests", "toml"]


def test_a_name_one_slip_from_a_far_more_used_one_is_left_out() -> None:
    assert names_of("reqests", "requestss", "rwquests", "reuqests", "nodeenv2") == names_of()


def test_a_name_that_differs_by_hyphens_alone_is_left_out() -> None:
    assert names_of("git-python", "node-env") == names_of()


def test_a_name_two_slips_away_is_kept() -> None:
    assert "nodeenv33" in names_of("nodeenv33")


def test_short_names_are_near_to_each_other_by_chance() -> None:
    assert "toms" in names_of("toms")


def test_a_reviewed_name_is_kept_however_near_it_is() -> None:
    assert "tomli" in names_of("tomli")


def test_what_is_refused_wrong_or_generic_or_a_part_of_python_is_left_out() -> None:
    assert names_of("torch", "jwt", "bs4", "utils", "pathlib", "yaml", "nvidia-nccl-cu12", "aaaaaaa") == names_of()
