"""Google Sheets by the names that people know."""

from __future__ import annotations

from typing import Any

from workbench.errors import InvalidRequest
from workbench.model.toolkit import Json, ToolResult
from workbench.toolkits.shipped.adapted.adaptation import (
    READS,
    REMOVES,
    REPLACES,
    Adaptation,
    Given,
    Step,
    adapted,
    flag,
    passed,
    text,
    texts,
)

_SHEET = text("Id of the spreadsheet: the part of its address between `/d/` and the next `/`.")
_RANGE = text("In A1 notation: `Sheet1!A1:C10`.")
# Cells may be written over; who asks twice has the rows twice.
_OVERWRITES = ("updateHint", "destructiveHint", "openWorldHint")
_VALUES: Json = {
    "type": "array",
    "items": {"type": "array", "items": {}},
    "description": 'Rows of cells: `[["name", "age"], ["Ada", 36]]`.',
}
_INPUTS = ["USER_ENTERED", "RAW"]
_INPUT = text(
    "`USER_ENTERED` as if typed, so that formulas and dates work; `RAW` as it is.",
    enum=_INPUTS,
    default="USER_ENTERED",
)


async def _write_cells(step: Step, given: Given) -> ToolResult:
    sheet = given.text("sheet_name")
    quoted = _quoted(sheet) if sheet else ""
    asked: Json = {
        "spreadsheetId": given.needed("spreadsheet_id"),
        "valueInputOption": given.text("value_input_option") or given.text("valueInputOption") or "USER_ENTERED",
        "values": _rows(given),
    }
    if first := given.text("first_cell_location"):
        where = f"{quoted}!{first}" if quoted else first
        return await step("GOOGLESHEETS_SPREADSHEETS_VALUES_UPDATE", {**asked, "range": where})
    return await step("GOOGLESHEETS_SPREADSHEETS_VALUES_APPEND", {**asked, "range": quoted or "A1"})


def _quoted(sheet: str) -> str:
    """A whole sheet, as a range."""
    return "'" + sheet.replace("'", "''") + "'"


async def _new_sheet(step: Step, given: Given) -> ToolResult:
    return await step("GOOGLESHEETS_SPREADSHEETS_CREATE", {"properties": {"title": given.needed("title")}})


async def _sheet_names(step: Step, given: Given) -> ToolResult:
    asked = {"spreadsheetId": given.needed("spreadsheet_id"), "fields": "sheets.properties.title"}
    found = await step("GOOGLESHEETS_SPREADSHEETS_GET", asked)
    if found.error:
        return found
    names = [one.get("properties", {}).get("title", "") for one in found.data.get("sheets") or ()]
    return ToolResult(data={"sheet_names": names}, http_status=found.http_status)


async def _add_sheet(step: Step, given: Given) -> ToolResult:
    request = {"addSheet": {"properties": {"title": given.needed("title")}}}
    asked = {"spreadsheetId": given.needed("spreadsheet_id"), "requests": [request]}
    return await step("GOOGLESHEETS_UPDATE_SPREADSHEET", asked)


async def _append(step: Step, given: Given) -> ToolResult:
    return await step("GOOGLESHEETS_SPREADSHEETS_VALUES_APPEND", _cells(given))


async def _overwrite(step: Step, given: Given) -> ToolResult:
    return await step("GOOGLESHEETS_SPREADSHEETS_VALUES_UPDATE", _cells(given))


def _cells(given: Given) -> Json:
    return {
        "spreadsheetId": given.needed("spreadsheet_id"),
        "range": given.needed("range"),
        "valueInputOption": given.text("value_input_option") or "USER_ENTERED",
        "values": _rows(given),
    }


def _rows(given: Given) -> list[Any]:
    values = given.arguments.get("values")
    if not isinstance(values, list) or not all(isinstance(row, list) for row in values):
        raise InvalidRequest("`values` has to be a list of rows, each a list of cells", {"argument": "values"})
    return values


async def _row(step: Step, given: Given) -> ToolResult:
    """The first row that has a cell of exactly this text."""
    wanted, is_exact = given.needed("query"), given.flag("case_sensitive")
    where = given.text("range")
    if not where:
        named = await _sheet_names(step, given)
        if named.error or not named.data["sheet_names"]:
            return named
        where = _quoted(named.data["sheet_names"][0])
    asked = {"spreadsheetId": given.needed("spreadsheet_id"), "range": where}
    found = await step("GOOGLESHEETS_SPREADSHEETS_VALUES_GET", asked)
    if found.error:
        return found
    rows = [row for row in found.data.get("values") or () if isinstance(row, list)]
    for number, row in enumerate(rows):
        cells = [str(one) for one in row]
        if wanted in cells or (not is_exact and wanted.casefold() in (one.casefold() for one in cells)):
            told = {"found": True, "row_data": row, "row_in_range": number + 1, "range": found.data.get("range", "")}
            return ToolResult(data=told, http_status=found.http_status)
    return ToolResult(data={"found": False, "rows_searched": len(rows)}, http_status=found.http_status)


SHEETS: tuple[Adaptation, ...] = (
    adapted(
        "GOOGLESHEETS_BATCH_GET",
        "Read cells of a spreadsheet, from one or more ranges.",
        {"spreadsheet_id": _SHEET, "ranges": texts("In A1 notation: `Sheet1!A1:C10`.")},
        passed("GOOGLESHEETS_SPREADSHEETS_VALUES_BATCH_GET", {"spreadsheet_id": "spreadsheetId", "ranges": "ranges"}),
        required=("spreadsheet_id", "ranges"),
        tags=READS,
    ),
    adapted(
        "GOOGLESHEETS_BATCH_UPDATE",
        "Write rows into a sheet: from `first_cell_location` on, or after the last row if that is not said.",
        {
            "spreadsheet_id": _SHEET,
            "sheet_name": text("Which sheet of it: `Sheet1`."),
            "values": _VALUES,
            "first_cell_location": text("Where the first cell goes: `A1`. Without it rows are appended."),
            "value_input_option": _INPUT,
            "valueInputOption": {"type": "string", "description": "The same by its other name.", "enum": _INPUTS},
        },
        _write_cells,
        required=("spreadsheet_id", "sheet_name", "values"),
        tags=_OVERWRITES,
    ),
    adapted(
        "GOOGLESHEETS_CREATE_GOOGLE_SHEET1",
        "Create a new, empty spreadsheet.",
        {"title": text("What it is called.")},
        _new_sheet,
        required=("title",),
    ),
    adapted(
        "GOOGLESHEETS_GET_SPREADSHEET_INFO",
        "What a spreadsheet has: its title, sheets and their sizes.",
        {"spreadsheet_id": _SHEET},
        passed("GOOGLESHEETS_SPREADSHEETS_GET", {"spreadsheet_id": "spreadsheetId"}),
        required=("spreadsheet_id",),
        tags=READS,
    ),
    adapted(
        "GOOGLESHEETS_GET_SHEET_NAMES",
        "Names of the sheets of a spreadsheet.",
        {"spreadsheet_id": _SHEET},
        _sheet_names,
        required=("spreadsheet_id",),
        tags=READS,
    ),
    adapted(
        "GOOGLESHEETS_ADD_SHEET",
        "Add a sheet to a spreadsheet.",
        {"spreadsheet_id": _SHEET, "title": text("What the sheet is called.")},
        _add_sheet,
        required=("spreadsheet_id", "title"),
    ),
    adapted(
        "GOOGLESHEETS_CLEAR_VALUES",
        "Empty the cells of a range; formats stay.",
        {"spreadsheet_id": _SHEET, "range": _RANGE},
        passed("GOOGLESHEETS_SPREADSHEETS_VALUES_CLEAR", {"spreadsheet_id": "spreadsheetId", "range": "range"}),
        required=("spreadsheet_id", "range"),
        tags=REMOVES,
    ),
    adapted(
        "GOOGLESHEETS_VALUES_GET",
        "Read the cells of one range of a spreadsheet.",
        {"spreadsheet_id": _SHEET, "range": _RANGE},
        passed("GOOGLESHEETS_SPREADSHEETS_VALUES_GET", {"spreadsheet_id": "spreadsheetId", "range": "range"}),
        required=("spreadsheet_id", "range"),
        tags=READS,
    ),
    adapted(
        "GOOGLESHEETS_VALUES_UPDATE",
        "Write cells into a range of a spreadsheet, over what is there.",
        {"spreadsheet_id": _SHEET, "range": _RANGE, "values": _VALUES, "value_input_option": _INPUT},
        _overwrite,
        required=("spreadsheet_id", "range", "values"),
        tags=REPLACES,
    ),
    adapted(
        "GOOGLESHEETS_VALUES_APPEND",
        "Append rows after the last row of a table in a spreadsheet.",
        {
            "spreadsheet_id": _SHEET,
            "range": text("Where the table is, in A1 notation: `Sheet1`, `Sheet1!A1:C1`."),
            "values": _VALUES,
            "value_input_option": _INPUT,
        },
        _append,
        required=("spreadsheet_id", "range", "values"),
    ),
    adapted(
        "GOOGLESHEETS_LOOKUP_SPREADSHEET_ROW",
        "Find the first row of a spreadsheet that has a cell of exactly this text.",
        {
            "spreadsheet_id": _SHEET,
            "query": text("What the cell says, all of it."),
            "range": text("Where to look, in A1 notation; in the first sheet without."),
            "case_sensitive": flag("Whether capital and small letters differ."),
        },
        _row,
        required=("spreadsheet_id", "query"),
        tags=READS,
    ),
)
