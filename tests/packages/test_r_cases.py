"""What a program of R that misses a package comes to: real packages of the distribution, real sandboxes, by REST."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from tests.packages.commands import Program, check
from tests.packages.conftest import MakeSession
from tests.restart.server import Server

pytestmark = pytest.mark.skipif(
    shutil.which("Rscript") is None or not any(Path("/var/lib/apt/lists").glob("*_Packages*")),
    reason="no R, or no lists of the distribution, on this machine",
)

PROGRAMS = (
    Program(name="in the image", file="a.R", code="library(jsonlite); cat(toJSON(1))", stdout="[1]"),
    Program(name="a probe", file="a.R", code="cat(requireNamespace('R.methodsS3', quietly = TRUE))", stdout="FALSE"),
    Program(name="its own answer", file="a.R", code="tryCatch(library(praise), error = function(e) cat('none'))",
            stdout="none", hints=("optional-import",)),
    Program(name="a dot in its name", file="a.R",
            code="suppressMessages(library(R.methodsS3)); cat(is.function(setMethodS3))",
            stdout="TRUE", installed=("r-cran-r.methodss3",)),
    Program(name="it is there already", file="a.R", code="cat(requireNamespace('R.methodsS3', quietly = TRUE))",
            stdout="TRUE"),
    Program(name="mistyped", file="a.R", code="library(dplry)", ok=False, says=("did you mean 'dplyr'?",),
            hints=("package-not-supported",)),
    Program(name="needs libraries of the system", file="a.R", code="library(sf)", ok=False,
            says=("system packages", "apt-get install r-cran-sf"), hints=("install-failed",)),
    Program(name="by name", file="a.R", code="install.packages('praise'); cat(praise::praise('so'))", stdout="so",
            installed=("r-cran-praise",)),
)  # fmt: skip


@pytest.mark.timeout(300)
def test_programs_of_r_get_what_they_miss(public: Server, sessions: MakeSession) -> None:
    session = sessions(public)
    for program in PROGRAMS:
        check(session, program)
