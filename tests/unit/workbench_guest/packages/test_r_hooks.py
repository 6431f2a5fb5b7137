"""A package that a program of R misses is asked for; a probe for one is told the truth."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.workbench_guest.packages.desk import Desk, answering

# One that Debian has, and that is hidden here until it is asked for.
REAL = Path("/usr/lib/R/site-library/jsonlite")
REFUSAL = "no supported package provides 'dplry'; did you mean 'dplyr'?"
ABSENT = "there is no package called \N{LEFT SINGLE QUOTATION MARK}dplry\N{RIGHT SINGLE QUOTATION MARK}"
WISH = {"language": "r", "modules": [], "requirements": [], "guarded": False}

pytestmark = pytest.mark.skipif(
    shutil.which("Rscript") is None or not REAL.is_dir(), reason="no R with jsonlite on this machine"
)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """Has jsonlite, and nothing else."""

    def answer(asked: dict[str, Any]) -> tuple[Any, str, str]:
        if [*asked["modules"], *asked["requirements"]] != ["jsonlite"]:
            return None, REFUSAL, "package_refused"
        shutil.copytree(REAL, tmp_path / "r" / "library" / "jsonlite")
        return {"installed": [], "present": [], "text": "installed it in 0.1 s"}, "", ""

    with answering(answer) as desk:
        yield desk


def _run(desk: Desk, place: Path, code: str) -> tuple[str, str]:
    (place / "a.R").write_text(code)
    ran = desk.run(
        "Rscript", "a.R", cwd=place,
        WORKBENCH_PACKAGES_FOLDER=str(place), R_LIBS_SITE=f"{place}/none:{place}/r/library",
    )  # fmt: skip
    return ran.stdout, ran.stderr


def test_what_is_missing_is_there_where_it_is_needed(tmp_path: Path, desk: Desk) -> None:
    told, problems = _run(desk, tmp_path, "library(jsonlite)\ncat(toJSON(1))")
    assert (told, problems) == ("[1]", "")
    assert desk.asked == [{**WISH, "modules": ["jsonlite"]}]
    # The next program has it.
    code = (
        "suppressPackageStartupMessages(library('jsonlite', character.only = TRUE)); cat(require(jsonlite), toJSON(2))"
    )
    assert _run(desk, tmp_path, code) == ("TRUE [2]", "")
    assert len(desk.asked) == 1


def test_a_name_in_a_variable_and_require_count_too(tmp_path: Path, desk: Desk) -> None:
    code = "f <- function(p) require(p, character.only = TRUE, quietly = TRUE)\ncat(f('jsonlite'), toJSON(1))"
    assert _run(desk, tmp_path, code) == ("TRUE [1]", "")


def test_install_packages_goes_the_same_way(tmp_path: Path, desk: Desk) -> None:
    code = "install.packages(c('stats', 'jsonlite'), repos = 'https://cran.example')\ncat(jsonlite::toJSON(1))"
    assert _run(desk, tmp_path, code) == ("[1]", "")
    assert desk.asked == [{**WISH, "requirements": ["jsonlite"]}]


def test_a_probe_installs_nothing_and_a_refusal_is_a_part_of_the_error(tmp_path: Path, desk: Desk) -> None:
    told, problems = _run(
        desk,
        tmp_path,
        """
        cat(requireNamespace("jsonlite", quietly = TRUE), nzchar(system.file(package = "jsonlite")), "\n")
        library(stats); library(utils, quietly = TRUE); invisible(suppressWarnings(require(tools)))
        e <- tryCatch(library(dplry), error = function(e) e)
        cat(class(e)[[1]], conditionMessage(e), sep = "\n")
        cat(suppressWarnings(require(dplry)))
        library(dplry)
        """,
    )
    assert told.splitlines() == [
        "FALSE FALSE ",
        "packageNotFoundError",
        ABSENT,
        f"[sandbox] {REFUSAL}",
        "FALSE",
    ]
    assert f"Error in library(dplry) : {ABSENT}\n[sandbox] {REFUSAL}" in problems
    # Once for a name; and the program had its own answer.
    assert desk.asked == [{**WISH, "modules": ["dplry"], "guarded": True}]


def test_where_nobody_answers_errors_are_as_r_makes_them(tmp_path: Path, desk: Desk) -> None:
    (tmp_path / "a.R").write_text("library(dplry)")
    ran = desk.run("Rscript", "a.R", cwd=tmp_path, WORKBENCH_CALLS="@nobody-is-here")
    assert ran.returncode == 1
    assert ABSENT in ran.stderr
    assert "[sandbox]" not in ran.stderr
