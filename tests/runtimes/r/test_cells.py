"""What a cell of R says, in the order in which it says it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.runtimes.r.talking import RKernel


def test_state_is_kept_and_the_last_value_is_the_result(r: RKernel) -> None:
    assert r.run("x <- 20\ny <- 'a'").reply["status"] == "ok"
    said = r.run("x + 1\nx + 2")
    assert (said.text(), said.plain) == ("[1] 21\n", "[1] 22")
    assert said.of("execute_result")[0]["execution_count"] == said.reply["execution_count"]


def test_what_is_invisible_gives_no_result(r: RKernel) -> None:
    for code in ("invisible(4)", "x <- 3", "", "# a comment", "if (FALSE) 1"):
        assert r.run(code).of("execute_result") == []


def test_print_goes_to_stdout_and_messages_and_warnings_to_stderr_as_r_says_them(r: RKernel) -> None:
    said = r.run("print('one'); cat('two\\n'); message('three'); warning('four'); invisible(log(-1))")
    assert said.text() == '[1] "one"\ntwo\n'
    assert said.text("stderr") == "three\nWarning message:\nfour \nWarning message:\nIn log(-1) : NaNs produced\n"
    assert said.reply["status"] == "ok"


def test_text_leaves_as_it_is_printed(r: RKernel) -> None:
    seen: list[str] = []

    def on(kind: str, content: dict[str, Any]) -> None:
        if kind == "stream" and "waiting" in content["text"]:
            # The cell waits for this file, which is made when its first line has come.
            seen.append(content["text"])
            Path(r.address).with_name("go").touch()

    said = r.run("cat('waiting\\n'); while (!file.exists('go')) Sys.sleep(0.01); cat('gone\\n')", on)
    assert seen == ["waiting\n"]
    assert said.text() == "waiting\ngone\n"


def test_an_error_has_its_class_its_message_and_the_users_own_calls(r: RKernel) -> None:
    said = r.run("f <- function(a) g(a)\ng <- function(b) stop('boom ', b)\nf(3)")
    assert (said.reply["status"], said.reply["ename"], said.reply["evalue"]) == ("error", "simpleError", "boom 3")
    assert said.reply["traceback"] == [
        "Error in g(a): boom 3", "Traceback:", "1. f(3)", "2. g(a)", '3. stop("boom ", b)',
    ]  # fmt: skip
    assert said.of("error")[0]["evalue"] == "boom 3"


@pytest.mark.parametrize(
    ("code", "name", "message"),
    [
        ("nowhere", "simpleError", "object 'nowhere' not found"),
        ("stop(structure(class = c('mine', 'error', 'condition'), list(message = 'm', call = NULL)))", "mine", "m"),
        ("1 +", "ParseError", "unexpected end of input"),
        ("f <- function() f(); f()", "StackOverflowError", ""),
        ("stopifnot(1 == 2)", "simpleError", "1 == 2 is not TRUE"),
        ("print.odd <- function(x, ...) stop('no'); structure(1, class = 'odd')", "simpleError", "no"),
    ],
)
def test_every_error_is_named(r: RKernel, code: str, name: str, message: str) -> None:
    said = r.run(code)
    assert said.reply["status"] == "error"
    assert said.reply["ename"].endswith(name)
    assert message in said.reply["evalue"]
    assert "workbench" not in "".join(said.reply["traceback"])
    assert r.run("'alive'").plain == '[1] "alive"'


def test_what_ran_before_an_error_is_kept(r: RKernel) -> None:
    said = r.run("kept <- 5; cat('before\\n'); stop('x'); kept <- 6")
    assert said.text() == "before\n"
    assert r.run("kept").plain == "[1] 5"


def test_nobody_steps_through_code_and_later_cells_run_as_ever(r: RKernel) -> None:
    for code in ("browser()", "debugonce(mean); mean(1)", "debug(mean)"):
        assert "nobody can type" in r.run(code).reply["evalue"]
    assert r.run("mean(c(1, 3))\nfor (i in 1:2) cat(i)").text() == "[1] 2\n12"


@pytest.mark.parametrize(
    "code", ["readline('name? ')", "readLines(stdin())", "scan()", "file('stdin')", "readLines(file('stdin'))"]
)
def test_who_wants_input_fails_with_words(r: RKernel, code: str) -> None:
    said = r.run(code)
    assert said.reply["status"] == "error"
    assert "nobody can type into this session" in said.reply["evalue"]


def test_what_commands_print_is_left_to_who_holds_the_pipe(r: RKernel) -> None:
    said = r.run("system('echo from the shell'); system2('echo', 'kept', stdout = TRUE)")
    assert (said.text(), said.plain) == ("", '[1] "kept"')
    assert r.run("system('exit 3')").of("execute_result") == []
    assert r.run("print(system('exit 3'))").text() == "[1] 3\n"
    assert r.process.stdout is not None
    assert r.process.stdout.readline() == b"from the shell\n"


def test_forks_of_r_calculate_and_print_to_their_own_descriptors(r: RKernel) -> None:
    # Often, and while another thread of the kernel has something to send.
    r.run("f <- function(i) { cat('child\\n'); i * 2 }")
    said = r.run("for (n in 1:40) { cat(n, ''); k <- parallel::mclapply(1:2, f) }; unlist(k)")
    assert said.plain == "[1] 2 4"
    assert said.text() == "".join(f"{n} " for n in range(1, 41))
    assert r.process.stdout is not None
    assert [r.process.stdout.readline() for _ in range(80)] == [b"child\n"] * 80


def test_the_receipt_tells_which_names_changed(r: RKernel) -> None:
    r.run("rm(list = ls())")
    assert r.run("a <- 1; b <- c(1, 2)").receipt["added"] == ["a", "b"]
    told = r.run("a <- 'other'; rm(b); d <- b <- NULL; rm(b)").receipt
    assert (told["added"], told["removed"], told["rebound"], told["more"]) == (["d"], ["b"], ["a"], 0)
    assert (r.run("a").receipt["rebound"], told["cwd"]) == ([], r.address.rpartition("/")[0])
    many = r.run("for (i in 1:300) assign(paste0('n', i), i)").receipt
    assert (len(many["added"]), many["more"]) == (200, 101)


def test_the_names_are_a_table(r: RKernel) -> None:
    r.run("rm(list = ls()); f <- function(x, y = 2) x; n <- 1:10; s <- 'text'; d <- data.frame(a = 1:2, b = 3:4)")
    r.run("delayedAssign('later', stop('computed'))")
    r.run("makeActiveBinding('moving', function() stop('computed'), environment())")
    told = {one["name"]: one for one in r.ask("workbench_variables_request", {"most": 4})["variables"]}
    assert sorted(told) == ["d", "f", "moving", "n"]
    assert told["d"] == {"name": "d", "type": "data.frame", "size": "2 x 2", "preview": "columns a, b"}
    assert told["f"]["preview"].startswith("function (x, y = 2)")
    assert (told["n"]["size"], told["moving"]["type"]) == ("10 items", "active binding")


def test_names_are_completed_and_code_is_known_to_go_on(r: RKernel) -> None:
    told = r.ask("complete_request", {"code": "1\nx <- mtca", "cursor_pos": 11})
    assert (told["matches"], told["cursor_start"], told["cursor_end"]) == (["mtcars"], 7, 11)
    assert r.ask("is_complete_request", {"code": "f <- function(x) {"})["status"] == "incomplete"
    assert r.ask("is_complete_request", {"code": "1 + 1"})["status"] == "complete"
    assert r.ask("is_complete_request", {"code": ") + ("})["status"] == "invalid"


def test_the_kernel_tells_what_it_is(r: RKernel) -> None:
    told = r.ask("kernel_info_request", {})
    assert (told["language_info"]["name"], told["language_info"]["file_extension"]) == ("R", ".r")
    assert r.ask("kernel_info_request", {}, "control")["banner"].startswith("R version ")


def test_letters_of_every_kind_come_through(r: RKernel) -> None:
    said = r.run("name <- 'Größe \N{SNOWMAN} \N{GRINNING FACE}'; cat(name, '\\n'); nchar(name)")
    assert (said.text(), said.plain) == ("Größe \N{SNOWMAN} \N{GRINNING FACE} \n", "[1] 9")
