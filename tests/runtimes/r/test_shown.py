"""Pictures, tables and pages: what a cell of R shows beside text."""

from __future__ import annotations

import base64
import io
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from tests.runtimes.r.talking import RKernel

TABLE = "application/vnd.workbench.table+json"


def drawn(picture: dict[str, Any]) -> Image.Image:
    image = Image.open(io.BytesIO(base64.b64decode(picture["data"]["image/png"]))).convert("RGB")
    assert picture["metadata"]["image/png"] == {"width": image.width, "height": image.height}
    return image


def test_every_page_is_a_picture(r: RKernel) -> None:
    said = r.run(
        "plot(1:10, col = 'red', pch = 19)\nlines(10:1, col = 'blue', lwd = 5)\nfor (i in 1:3) hist(rnorm(50))\n'done'"
    )
    first, *rest = [drawn(one) for one in said.pictures]
    assert (first.size, len(rest)) == ((840, 840), 3)
    colours = {colour for _, colour in first.getcolors(1_000_000) or []}
    # What was added by a later line is on the same page.
    assert {(255, 0, 0), (0, 0, 255), (255, 255, 255)} <= colours
    kinds = [kind for kind, _ in said.messages]
    assert kinds.index("execute_result") > max(n for n, kind in enumerate(kinds) if kind == "display_data")


def test_the_size_is_that_of_the_options_for_each_picture(r: RKernel) -> None:
    first = "options(repr.plot.width = 4, repr.plot.height = 3); plot(1)"
    second = "options(repr.plot.width = 6, repr.plot.res = 100); plot(2)"
    assert [drawn(one).size for one in r.run(f"{first}\n{second}").pictures] == [(480, 360), (600, 300)]
    r.run("options(repr.plot.width = NULL, repr.plot.height = NULL, repr.plot.res = NULL)")


def test_a_cell_that_fails_shows_what_it_has_drawn(r: RKernel) -> None:
    assert len(r.run("plot(1); stop('x')").pictures) == 1


def test_a_file_that_is_drawn_is_no_picture(r: RKernel) -> None:
    said = r.run("png('mine.png'); plot(1); invisible(dev.off()); plot(2); invisible(dev.off())")
    assert len(said.pictures) == 1
    assert Path(r.address).with_name("mine.png").stat().st_size > 1000


def test_a_drawing_may_be_asked_for_as_lines(r: RKernel) -> None:
    (shown,) = r.run("options(jupyter.plot_mimetypes = 'image/svg+xml'); plot(1)").of("display_data")
    assert shown["data"]["image/svg+xml"].startswith("<?xml")
    r.run("options(jupyter.plot_mimetypes = NULL)")


def test_a_ggplot_is_drawn_when_it_is_the_value(r: RKernel) -> None:
    said = r.run("library(ggplot2)\np <- ggplot(mtcars, aes(wt, mpg)) + geom_point(colour = 'red')\np\np")
    assert [drawn(one).size for one in said.pictures] == [(840, 840)] * 2
    assert said.of("execute_result") == []


def test_a_data_frame_is_html_text_and_rows(r: RKernel) -> None:
    said = r.run(
        "data.frame(n = c(1.5, NA), s = factor(c('<x>', 'y')), d = as.Date('2026-01-02'), l = I(list(1, 'b')))"
    )
    assert said.plain.splitlines()[0].split() == ["n", "s", "d", "l"]
    html = said.result["text/html"]
    assert "<td>&lt;x&gt;</td>" in html
    assert "data.frame: 2 \N{MULTIPLICATION SIGN} 4" in html
    assert said.result[TABLE] == {
        "columns": [
            {"name": "n", "dtype": "numeric"}, {"name": "s", "dtype": "factor"},
            {"name": "d", "dtype": "Date"}, {"name": "l", "dtype": "AsIs"},
        ],
        "rows": [[1.5, "<x>", "2026-01-02", "1"], [None, "y", "2026-01-02", "b"]],
        "shape": [2, 4],
    }  # fmt: skip


def test_a_large_table_is_shown_in_part_and_says_so(r: RKernel) -> None:
    said = r.run("as.data.frame(matrix(1:90000, 3000))")
    assert said.plain.endswith("[the first 60 of 3000 rows, 20 of 30 columns]")
    assert said.result["text/html"].count("<tr>") == 62
    assert (len(said.result[TABLE]["rows"]), said.result[TABLE]["shape"]) == (1000, [3000, 30])
    shorter = r.run("options(repr.matrix.max.rows = 5); matrix(1:90, 30)").result
    assert shorter["text/html"].count("<tr>") == 7
    r.run("options(repr.matrix.max.rows = NULL)")


@pytest.mark.parametrize(
    "code", ["data.frame()", "data.frame(a = integer())", "matrix(0, 0, 3)", "matrix(list(), 0, 0)"]
)
def test_an_empty_table_is_no_error(r: RKernel, code: str) -> None:
    said = r.run(code)
    assert said.reply["status"] == "ok"
    assert said.plain
    assert said.text("stderr") == ""


def test_a_tibble_prints_as_tibbles_do(r: RKernel) -> None:
    said = r.run("tibble::tibble(a = 1:2, b = list(1, 'x'))")
    assert said.plain.startswith("# A tibble: 2 \N{MULTIPLICATION SIGN} 2")
    assert said.result[TABLE]["rows"] == [[1, "1"], [2, "x"]]


def test_a_table_in_the_middle_is_shown_and_other_values_are_printed(r: RKernel) -> None:
    said = r.run("data.frame(a = 1)\n'text'\n3")
    assert ("text/html" in said.of("display_data")[0]["data"], said.text(), said.plain) == (
        True,
        '[1] "text"\n',
        "[1] 3",
    )


def test_methods_of_the_user_print_the_users_values(r: RKernel) -> None:
    said = r.run("print.mine <- function(x, ...) cat('<mine>\\n'); structure(1, class = 'mine')")
    assert said.plain == "<mine>"


def test_a_widget_is_a_page_that_needs_nothing_else_and_a_chart_is_data(r: RKernel) -> None:
    said = r.run("suppressPackageStartupMessages(library(plotly)); plot_ly(x = 1:2, y = 3:4, type = 'bar')")
    assert said.plain == "<plotly>"
    html = said.result["text/html"]
    assert "plotly.js v" in html
    assert "<script src=" not in html
    chart = said.result["application/vnd.plotly.v1+json"]
    assert (chart["data"][0]["type"], chart["data"][0]["y"]) == ("bar", [3, 4])
    assert r.run("htmltools::tags$b('<')").result["text/html"].strip() == "<b>&lt;</b>"
