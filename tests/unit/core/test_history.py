"""A session's history: in pages, and as a notebook that Jupyter takes."""

from __future__ import annotations

import json
from typing import Any

import nbformat
import pytest
from tests.unit.core.standins import World

from workbench.core import requests
from workbench.errors import Cancelled, InvalidRequest, NotFound
from workbench.model.execution import (
    CellError,
    CellResult,
    CommandResult,
    Display,
    Outcome,
    Receipt,
    Text,
)
from workbench.model.ids import CellId, ProjectId, SandboxId, SessionId
from workbench.model.records import CellKind, CellRecord, Problem, Progress

ONE = SessionId("one")


@pytest.fixture
async def world() -> World:
    made = World()
    await made.bench().create_session(requests.CreateSession(session=ONE))
    return made


def text(words: str) -> Text:
    return Text(text=words, characters=len(words), lines=1)


async def kept(
    world: World,
    end: CellResult | CommandResult | Problem | None,
    *,
    cell: str = "c-1",
    code: str = "x",
    said: Progress | None = None,
) -> None:
    kind = CellKind.COMMAND if isinstance(end, CommandResult) else CellKind.CELL
    record = CellRecord(
        id=CellId(cell),
        session=ONE,
        kind=kind,
        code=code,
        limit_s=9.0,
        progress=said or Progress(),
        sandbox=SandboxId("sb"),
        created_at=world.clock.now_iso(),
    )
    await world.cells.add(record)
    if end is not None:
        await world.cells.finish(ONE, record.id, world.clock.now_iso(), end)


async def notebook(world: World) -> dict[str, Any]:
    made = await world.bench().export_notebook(requests.ExportNotebook(session=ONE))
    # As a file of it is read.
    words = json.dumps(made, ensure_ascii=False).encode().decode()
    nbformat.validate(nbformat.reads(words, as_version=4))  # type: ignore[no-untyped-call]
    return made


# Pages


async def test_pages_go_on_where_the_last_ended_in_both_directions(world: World) -> None:
    for number in range(5):
        await kept(world, None, cell=f"c-{number}")
    for newest_first, expected in ((False, "01234"), (True, "43210")):
        seen, after = "", None
        while True:
            ask = requests.ListCells(session=ONE, after=after, limit=2, newest_first=newest_first)
            page = await world.bench().list_cells(ask)
            seen += "".join(record.id[-1] for record in page.cells)
            if (after := page.next_after) is None:
                break
        assert seen == expected


@pytest.mark.parametrize("limit", [0, 1001])
async def test_a_page_has_a_bounded_length(world: World, limit: int) -> None:
    with pytest.raises(InvalidRequest):
        await world.bench().list_cells(requests.ListCells(session=ONE, limit=limit))


async def test_the_history_of_a_session_that_is_not_there_is_not_found(world: World) -> None:
    for bench, name in ((world.bench(), SessionId("none")), (world.bench(ProjectId("other")), ONE)):
        with pytest.raises(NotFound):
            await bench.list_cells(requests.ListCells(session=name))
        with pytest.raises(NotFound):
            await bench.export_notebook(requests.ExportNotebook(session=name))


# Notebooks


async def test_an_empty_session_is_an_empty_notebook(world: World) -> None:
    assert (await notebook(world))["cells"] == []


async def test_what_really_ran_is_in_the_notebook(world: World) -> None:
    said = Progress(thought="let us see", current_step="READ", current_step_metric="1/2")
    await world.bench().run_cell(requests.RunCell(session=ONE, code="say hi", progress=said))
    await world.bench().run_command(requests.RunCommand(session=ONE, command="ls -la"))
    thought, cell, command = (await notebook(world))["cells"]
    assert (thought["cell_type"], thought["source"]) == ("markdown", "let us see")
    assert (cell["source"], cell["execution_count"]) == ("say hi", 1)
    assert cell["outputs"] == [{"output_type": "stream", "name": "stdout", "text": "hi"}]
    about = cell["metadata"]["workbench"]
    assert (about["thought"], about["current_step"], about["current_step_metric"]) == ("let us see", "READ", "1/2")
    assert (about["outcome"], about["receipt"]["epoch"], about["receipt"]["state"]) == ("ok", 1, "intact")
    assert (command["source"], command["execution_count"]) == ("%%bash\nls -la", None)
    assert command["metadata"]["workbench"]["exit_code"] == 0


async def test_rich_outputs_keep_their_formats_and_json_is_json_again(world: World) -> None:
    picture = Display(data={"image/png": "aGk=", "text/plain": "<fig>"}, metadata='{"image/png": {"width": 5}}')
    table = Display(data={"text/html": "<b>", "application/vnd.x+json": '{"a": [1]}'}, is_result=True)
    result = CellResult(
        cell=CellId("c-1"),
        outcome=Outcome.OK,
        results=text("   a\n0  1"),
        stderr=text("careful"),
        displays=(picture, table),
        receipt=Receipt(epoch=1, execution_count=7),
    )
    await kept(world, result)
    (cell,) = (await notebook(world))["cells"]
    assert [output["output_type"] for output in cell["outputs"]] == ["stream", "display_data", "execute_result"]
    shown, value = cell["outputs"][1:]
    assert (shown["data"]["image/png"], shown["metadata"]) == ("aGk=", {"image/png": {"width": 5}})
    assert value["data"] == {"text/plain": "   a\n0  1", "text/html": "<b>", "application/vnd.x+json": {"a": [1]}}
    assert (value["execution_count"], cell["execution_count"]) == (7, 7)


async def test_a_plain_last_value_is_a_result(world: World) -> None:
    await kept(world, CellResult(cell=CellId("c-1"), outcome=Outcome.OK, results=text("4"), receipt=Receipt(epoch=1)))
    (cell,) = (await notebook(world))["cells"]
    (output,) = cell["outputs"]
    assert (output["output_type"], output["data"]) == ("execute_result", {"text/plain": "4"})


async def test_what_was_raised_and_what_was_explained_are_there(world: World) -> None:
    error = CellError(name="ValueError", message="no", traceback="Traceback\n  line 1\nValueError: no")
    raised = CellResult(cell=CellId("c-1"), outcome=Outcome.RAISED, error=error, receipt=Receipt(epoch=1))
    late = CellResult(
        cell=CellId("c-2"), outcome=Outcome.TIMED_OUT, explanation="It took too long.", receipt=Receipt(epoch=1)
    )
    await kept(world, raised)
    await kept(world, late, cell="c-2")
    first, second = (await notebook(world))["cells"]
    assert first["outputs"] == [
        {
            "output_type": "error",
            "ename": "ValueError",
            "evalue": "no",
            "traceback": ["Traceback", "  line 1", "ValueError: no"],
        }
    ]
    assert second["outputs"][0]["text"] == "It took too long.\n"
    assert second["metadata"]["workbench"]["outcome"] == "timed out"


async def test_what_never_began_and_what_still_runs_are_there_as_such(world: World) -> None:
    await kept(world, Problem.of(Cancelled("taken out of the queue")))
    await kept(world, None, cell="c-2")
    failed, pending = (await notebook(world))["cells"]
    assert (failed["outputs"][0]["ename"], failed["metadata"]["workbench"]["status"]) == ("cancelled", "failed")
    assert (pending["outputs"], pending["metadata"]["workbench"]["status"]) == ([], "pending")


async def test_ids_are_unique_whatever_callers_choose(world: World) -> None:
    said = Progress(thought="hm")
    await kept(world, None, cell="x-thought")
    await kept(world, None, cell="x", said=said)
    await kept(world, None, cell="y" * 48, said=said)
    ids = [cell["id"] for cell in (await notebook(world))["cells"]]
    assert ids == ["x-thought", "x-thought-2", "x", "y" * 48 + "-thought", "y" * 48]


@pytest.mark.parametrize("words", ["{", "NaN", '{"a": Infinity}', '"\\ud800"', "[" * 100_000, "9" * 5000])
async def test_what_a_guest_calls_json_and_is_not_leaves_the_notebook_readable(world: World, words: str) -> None:
    display = Display(data={"application/json": words, "text/plain": "?"}, metadata=words)
    await kept(world, CellResult(cell=CellId("c-1"), outcome=Outcome.OK, displays=(display,), receipt=Receipt(epoch=1)))
    (cell,) = (await notebook(world))["cells"]
    assert (cell["outputs"][0]["data"]["application/json"], cell["outputs"][0]["metadata"]) == (words, {})


async def test_a_type_that_notebooks_do_not_know_stays_text(world: World) -> None:
    display = Display(data={"a/b c+json": "{}"})
    await kept(world, CellResult(cell=CellId("c-1"), outcome=Outcome.OK, displays=(display,), receipt=Receipt(epoch=1)))
    (cell,) = (await notebook(world))["cells"]
    assert cell["outputs"][0]["data"] == {"a/b c+json": "{}"}


async def test_long_histories_are_read_page_by_page(world: World) -> None:
    for number in range(130):
        await kept(world, None, cell=f"c-{number:03}")
    assert [cell["id"] for cell in (await notebook(world))["cells"]] == [f"c-{number:03}" for number in range(130)]
