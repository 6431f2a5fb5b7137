"""What a cell displayed, as execute_code gives it."""

from __future__ import annotations

from workbench.mcp.tools.sandbox_displays import drawings, shown, written
from workbench.model.execution import Display

TABLE = "application/vnd.workbench.table+json"


def test_rows_of_a_table_are_for_programs() -> None:
    frame = Display(data={"text/html": "<table>", TABLE: '{"rows":[]}'}, is_result=True)
    assert shown([frame]) == [{"text/html": "<table>", TABLE: '{"rows":[]}'}]
    assert written([frame]) == [{"text/html": "<table>"}]


def test_json_is_whole_or_its_size() -> None:
    large = Display(data={TABLE: "[" + "1," * 20_000 + "1]"})
    assert shown([large]) == [{TABLE: "[40,003 characters, not shown]"}]


def test_a_format_in_a_file_is_named_with_its_path() -> None:
    display = Display(data={"text/plain": "p"}, files={"text/html": "/mnt/files/outputs/c.html"})
    assert shown([display]) == [{"text/plain": "p", "text/html": "[too large, in /mnt/files/outputs/c.html]"}]
    only = Display(data={}, files={"image/png": "/mnt/files/outputs/c.png"}, is_result=True)
    assert shown([only]) == written([only]) == [{"image/png": "[too large, in /mnt/files/outputs/c.png]"}]


def test_drawings_are_given_where_there_is_no_picture_and_within_bounds() -> None:
    svg = "image/svg+xml"
    displays = [Display(data={svg: "<svg/>"}), Display(data={svg: "<svg/>", "image/png": "x"})]
    assert drawings([*displays, Display(data={svg: "s" * 200_000})]) == ("<svg/>",)
    assert len(drawings([displays[0]] * 20)) == 5
