"""A SIGINT to the group ends a cell, and not what it was about; what cannot be reached by one is said, too."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.runtimes.r.talking import RKernel


@pytest.mark.parametrize(
    "code",
    [
        "Sys.sleep(1000)",
        "while (TRUE) {}",
        "repeat try(stop('x'), silent = TRUE)",
        "f <- function() while (TRUE) NULL; f()",
        "system('sleep 1000'); cat('went on')",
        "system('trap \"\" INT; while :; do sleep 0.1; done'); cat('went on')",
        "x <- system('sleep 1000', intern = TRUE); cat('went on')",
        "for (i in 1:1e9) sort(runif(1e5))",
        "Reduce(`+`, 1:1e9, accumulate = TRUE)",
        "parallel::mclapply(1:2, function(i) Sys.sleep(1000)); cat('went on')",
    ],
)
def test_an_interrupt_ends_the_cell_and_keeps_the_state(r: RKernel, code: str) -> None:
    r.run("kept <- 41")
    said = r.run_interrupted(f"cat('go\\n')\n{code}")
    assert (said.reply["status"], said.reply["ename"]) == ("error", "interrupt")
    assert "went on" not in said.text()
    assert r.run("kept + 1").plain == "[1] 42"


def test_cells_that_wait_behind_an_interrupted_one_run(r: RKernel) -> None:
    first, second = r.send("cat('go\\n'); Sys.sleep(1000)", stop_on_error=True), r.send("'ran'", stop_on_error=True)
    said = r.rest_of(first, lambda kind, content: r.interrupt() if kind == "stream" else None)
    assert said.reply["status"] == "error"
    assert r.rest_of(second).plain == '[1] "ran"'


def test_cells_that_wait_behind_a_failed_one_do_not_run_if_they_asked_for_that(r: RKernel) -> None:
    first = r.send("cat('go\\n'); while (!file.exists('sent')) Sys.sleep(0.01); stop('x')", stop_on_error=True)
    second = r.send("'ran'", stop_on_error=True)
    Path(r.address).with_name("sent").touch()
    assert r.rest_of(first).reply["status"] == "error"
    assert r.rest_of(second).reply["status"] == "aborted"
    assert r.run("1").reply["status"] == "ok"


def test_code_may_catch_an_interrupt(r: RKernel) -> None:
    said = r.run_interrupted("tryCatch({cat('go\\n'); Sys.sleep(1000)}, interrupt = function(i) cat('caught\\n'))")
    assert (said.reply["status"], said.text()) == ("ok", "go\ncaught\n")


def test_an_interrupt_that_comes_late_hits_nobody(r: RKernel) -> None:
    r.run("1")
    r.interrupt()
    assert r.run("for (i in 1:10000) i; 'whole'").plain == '[1] "whole"'


def test_a_notebook_interrupts_by_a_message(r: RKernel) -> None:
    def on(kind: str, content: dict[str, object]) -> None:
        if kind == "stream":
            assert r.ask("interrupt_request", {}, "control")["status"] == "ok"

    assert r.run("cat('go\\n'); Sys.sleep(1000)", on).reply["ename"] == "interrupt"
