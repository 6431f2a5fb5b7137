"""Much of everything arrives whole, and the end of the cell after it."""

from __future__ import annotations

from tests.runtimes.r.talking import RKernel


def test_fifty_megabytes_of_text_are_complete(r: RKernel) -> None:
    said = r.run(
        "line <- paste(rep(strrep('x', 99), 1000), collapse = '\\n'); for (i in 1:500) cat(line, '\\n', sep = '')"
    )
    assert len(said.text()) == 500 * 100_000
    assert said.reply["status"] == "ok"


def test_twenty_thousand_displays_are_complete_for_a_slow_reader(r: RKernel) -> None:
    show = "show <- getOption('jupyter.base_display_func'); for (i in 1:20000) show(list('text/plain' = paste(i)))"
    said = r.run(show)
    assert [int(one["data"]["text/plain"]) for one in said.of("display_data")] == list(range(1, 20_001))


def test_a_value_as_long_as_a_flood_is_text(r: RKernel) -> None:
    said = r.run("options(max.print = 1e6); seq_len(1e6)")
    assert said.of("execute_result") == []
    assert said.text().rstrip().endswith("1000000")
