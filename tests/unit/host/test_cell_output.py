"""What cells say: into the spool, into the result, into files of the mount."""

from __future__ import annotations

import asyncio
import base64
import json
import time
import tracemalloc
from pathlib import Path

import msgspec
import pytest
from tests.unit.host.stand_ins import BOUND_S, shown, stderr, stdout

from workbench.contracts.host import was_dropped
from workbench.errors import Conflict, InvalidRequest, NotFound
from workbench.host.cells import displays
from workbench.host.cells.cell_spool import CellSpool
from workbench.host.cells.mount_files import Mount
from workbench.host.cells.recorder import Recorder
from workbench.host.cells.tracked import Shelf, Tracked
from workbench.model.execution import Cell, CellError, CellResult, Display, Piece, PieceKind, Receipt
from workbench.model.ids import CellId
from workbench.wire import host as wire

MIB = 2**20


def spool_at(folder: Path, max_bytes: int = 2**28, name: str = "spool") -> CellSpool:
    return CellSpool(folder / name, max_bytes)


def recorder_at(folder: Path, max_bytes: int = 2**28, name: str = "c-1") -> Recorder:
    return Recorder(CellId(name), spool_at(folder, max_bytes, f"spool-{name}"), max_bytes)


def mount_at(folder: Path, most_bytes: int = 2**30) -> Mount:
    files = folder / "files"
    files.mkdir(exist_ok=True)
    return Mount(files, most_bytes, 1000)


# The spool


async def test_a_spool_is_read_from_offsets_while_it_is_written(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    early = asyncio.create_task(spool.read(0, MIB, BOUND_S))
    await asyncio.sleep(0)
    spool.append(stdout("one"))
    first = await early
    assert first.pieces == (stdout("one"),)
    assert not first.ended
    late = asyncio.create_task(spool.read(first.next_offset, MIB, BOUND_S))
    await asyncio.sleep(0)
    spool.append(stderr("two"))
    spool.end()
    second = await late
    assert second.pieces == (stderr("two"),)
    assert second.ended
    again = await spool.read(0, MIB, 0)
    assert again.pieces == (stdout("one"), stderr("two"))
    assert again.ended
    assert (await spool.read(again.next_offset, MIB, BOUND_S)).ended


async def test_a_page_has_whole_pieces_and_at_least_one(tmp_path: Path) -> None:
    spool = spool_at(tmp_path)
    said = [stdout(f"{number}" * 50) for number in range(500)]
    for piece in said:
        spool.append(piece)
    spool.end()
    read: list[Piece] = []
    offset, ended, pages = 0, False, 0
    while not ended:
        page = await spool.read(offset, 1000, 0)
        read += page.pieces
        offset, ended, pages = page.next_offset, page.ended, pages + 1
    assert read == said
    assert pages > 20
    assert len((await spool.read(0, 1, 0)).pieces) == 1
    with pytest.raises(InvalidRequest, match="no piece begins at offset 3"):
        await spool.read(3, 1000, 0)
    with pytest.raises(InvalidRequest, match="after the end"):
        await spool.read(spool.size + 1, 1000, 0)


async def test_a_full_spool_counts_what_it_drops_and_names_its_cap(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path, 2 * MIB)
    for _ in range(30):
        recorder.add(stdout("x" * (MIB // 8)))
    await recorder.keep_whole(mount_at(tmp_path))
    text = recorder.text("stdout")
    assert recorder.spool.size <= 2 * MIB
    assert recorder.spool.dropped_bytes >= 30 * MIB // 8 - 2 * MIB
    assert text.characters == 30 * MIB // 8
    assert "beyond 2 MiB" in text.note
    assert "WORKBENCH_SPOOL_MAX_MIB" in text.note
    assert text.file_path is not None


async def test_a_spool_whose_disk_fails_counts_and_goes_on(tmp_path: Path) -> None:
    recorder = Recorder(CellId("c-1"), CellSpool(tmp_path / "missing" / "spool", MIB), MIB)
    recorder.add(stdout("hello"))
    assert recorder.spool.dropped_bytes > 0
    assert recorder.text("stdout").text == "hello"
    page = await recorder.spool.read(0, MIB, 0)
    assert page.pieces == ()


async def test_floods_are_cheap(tmp_path: Path) -> None:
    recorder, began = recorder_at(tmp_path), time.process_time()
    for _ in range(200):
        recorder.add(stdout(("y" * 127 + "\n") * 2048))
    for number in range(20_000):
        recorder.add(shown(text_plain=str(number)))
    spent = time.process_time() - began
    recorder.end()
    assert sum(1 for _ in recorder.spool.pieces()) == 20_200
    # Measured 0.2 s; quadratic work would take minutes.
    assert spent < 5
    assert recorder.text("stdout").lines == 200 * 2048


async def test_a_piece_too_large_for_an_answer_is_shortened_there_and_whole_in_the_file(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    huge = "z" * (40 * MIB)
    recorder.add(shown(is_result=True, text_plain=huge, image_png=huge))
    await recorder.keep_whole(mount_at(tmp_path))
    page = await recorder.spool.read(0, MIB, 0)
    assert len(msgspec.msgpack.encode(page.pieces)) < wire.MAX_FRAME
    assert page.ended
    results = recorder.text("results")
    assert (results.characters, results.lines) == (len(huge), 1)
    assert (tmp_path / "files/outputs/c-1.results.txt").read_text() == huge


async def test_half_a_surrogate_pair_is_replaced_and_not_a_reason_to_fail(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    recorder.add(stdout("a\ud800b"))
    recorder.add(shown(text_plain="\udfff"))
    recorder.add(Piece(kind=PieceKind.ERROR, error=CellError(name="E", message="\ud800", traceback="")))
    assert recorder.text("stdout").text == "a?b"
    assert recorder.error is not None
    assert recorder.error.message == "?"
    assert len((await recorder.spool.read(0, MIB, 0)).pieces) == 3


# Texts


async def test_a_long_text_is_whole_in_a_file_and_the_note_says_how_to_read_it(tmp_path: Path) -> None:
    recorder, lines = recorder_at(tmp_path), [f"{number} \u4f60\u597d\n" for number in range(9000)]
    for line in lines:
        recorder.add(stdout(line))
    recorder.add(stderr("short"))
    await recorder.keep_whole(mount_at(tmp_path))
    text = recorder.text("stdout")
    assert text.file_path == "/mnt/files/outputs/c-1.stdout.txt"
    assert "open('/mnt/files/outputs/c-1.stdout.txt').read()" in text.note
    assert (tmp_path / "files/outputs/c-1.stdout.txt").read_text(encoding="utf-8") == "".join(lines)
    assert (text.characters, text.lines) == (len("".join(lines)), 9000)
    assert len(text.text) <= 40_000
    assert recorder.text("stderr").file_path is None
    assert not (tmp_path / "files/outputs/c-1.stderr.txt").exists()


async def test_a_full_mount_gives_the_reason_instead_of_a_file(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    recorder.add(stdout("x" * 300_000))
    await recorder.keep_whole(mount_at(tmp_path, most_bytes=100_000))
    text = recorder.text("stdout")
    assert text.file_path is None
    assert "/mnt/files is full" in text.note
    assert text.characters == 300_000
    assert list((tmp_path / "files/outputs").iterdir()) == [], "half a file would be read as the whole"


async def test_a_name_that_is_taken_is_named_and_the_other_files_are_written(tmp_path: Path) -> None:
    mount, recorder = mount_at(tmp_path), recorder_at(tmp_path)
    (tmp_path / "files/outputs").mkdir()
    (tmp_path / "files/outputs/c-1.stdout.txt").write_text("mine")
    recorder.add(stdout("x" * 50_000))
    recorder.add(stderr("y" * 50_000))
    await recorder.keep_whole(mount)
    assert recorder.text("stdout").note == (
        "the whole is not in a file: /mnt/files/outputs/c-1.stdout.txt exists already"
    )
    assert recorder.text("stderr").file_path == "/mnt/files/outputs/c-1.stderr.txt"
    assert (tmp_path / "files/outputs/c-1.stdout.txt").read_text() == "mine"


async def test_who_gives_the_mount_back_is_not_written_behind(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    recorder.add(stdout("x" * 300_000))
    recorder.give_up()
    await recorder.keep_whole(mount_at(tmp_path))
    assert "closed" in recorder.text("stdout").note
    assert list((tmp_path / "files/outputs").iterdir()) == []


def test_colours_are_taken_out_of_a_traceback_and_its_length_is_bounded(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    coloured = "\x1b[0;31mValueError\x1b[0m: \x1b]0;title\x07no" + "x" * 10**6
    recorder.add(Piece(kind=PieceKind.ERROR, error=CellError(name="V", message="m" * 10**6, traceback=coloured)))
    assert recorder.error is not None
    assert recorder.error.traceback.startswith("ValueError: nox")
    assert len(recorder.error.traceback) <= 40_000
    assert len(recorder.error.message) <= 40_000


# Displays


async def test_displays_over_the_most_are_counted_and_in_a_file(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    for number in range(displays.MOST_DISPLAYS + 3):
        recorder.add(shown(display_id=f"d{number}", text_plain=str(number)))
    recorder.add(shown(display_id="d51", kind=PieceKind.UPDATE, text_plain="changed"))
    await recorder.keep_whole(mount_at(tmp_path))
    assert [one.data["text/plain"] for one in recorder.displays] == [str(number) for number in range(50)]
    assert recorder.displays_left_out == 3
    assert recorder.displays_file == "/mnt/files/outputs/c-1.displays.jsonl"
    lines = (tmp_path / "files/outputs/c-1.displays.jsonl").read_text().splitlines()
    told = [json.loads(line) for line in lines]
    assert [(one["data"]["text/plain"], one["update"]) for one in told] == [
        ("50", False), ("51", False), ("52", False), ("changed", True),
    ]  # fmt: skip
    assert "json.loads" in recorder.displays_note


async def test_displays_over_the_most_bytes_are_left_out(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    for _ in range(3):
        recorder.add(shown(image_png="A" * (3 * MIB)))
    await recorder.keep_whole(mount_at(tmp_path, most_bytes=1000))
    assert (len(recorder.displays), recorder.displays_left_out) == (2, 1)
    assert recorder.displays_file is None
    assert "/mnt/files is full" in recorder.displays_note


def test_an_update_replaces_what_is_shown_wherever_it_is_shown(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    recorder.add(shown(display_id="d", text_plain="1"))
    recorder.add(shown(display_id="d", text_plain="1"))
    recorder.add(shown(display_id="d", kind=PieceKind.UPDATE, text_html="<b>2</b>"))
    assert [(one.data, one.is_update) for one in recorder.displays] == [({"text/html": "<b>2</b>"}, False)] * 2
    assert recorder.displays_left_out == 0


def test_ids_of_what_is_left_out_are_held_only_if_they_are_short() -> None:
    keeper, held = displays.DisplayKeeper(most=0), []
    tracemalloc.start()
    try:
        for number in range(50):
            keeper.add(shown(display_id=f"{number}" + "x" * MIB, text_plain="1"))
            held.append(tracemalloc.get_traced_memory()[0])
    finally:
        tracemalloc.stop()
    assert keeper.left_out == 50
    assert held[-1] - held[0] < 5 * MIB
    keeper.add(shown(display_id="short", text_plain="1"))
    assert not keeper.add(shown(display_id="short", kind=PieceKind.UPDATE, text_plain="2"))


def test_an_update_of_what_an_earlier_cell_displayed_is_told_as_one(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    recorder.add(shown(display_id="earlier", kind=PieceKind.UPDATE, text_plain="50 %"))
    recorder.add(shown(display_id="earlier", kind=PieceKind.UPDATE, text_plain="100 %"))
    recorder.add(shown(kind=PieceKind.UPDATE, text_plain="of nothing"))
    (told,) = recorder.displays
    assert (told.data, told.display_id, told.is_update) == ({"text/plain": "100 %"}, "earlier", True)


async def test_what_was_cleared_is_not_in_the_result_nor_in_its_files_and_is_in_the_spool(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    recorder.add(stdout("before" * 10_000))
    recorder.add(shown(image_png="A" * (7 * MIB)))
    recorder.add(shown(display_id="d", text_plain="1"))
    recorder.add(Piece(kind=PieceKind.CLEAR))
    recorder.add(stdout("after" * 10_000))
    recorder.add(shown(display_id="d", kind=PieceKind.UPDATE, text_plain="2"))
    recorder.add(shown(text_html="h" * MIB))
    await recorder.keep_whole(mount_at(tmp_path))
    assert recorder.text("stdout").characters == 50_000
    assert (tmp_path / "files/outputs/c-1.stdout.txt").read_text() == "after" * 10_000
    # The update is of something that is not shown any more.
    assert [one.is_update for one in recorder.displays] == [True, False]
    assert sorted(one.name for one in (tmp_path / "files/outputs").iterdir()) == [
        "c-1.display-2-0.html", "c-1.stdout.txt",
    ]  # fmt: skip
    assert sum(1 for _ in recorder.spool.pieces()) == 7


def test_a_clearing_that_waits_takes_away_once_something_else_comes(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    recorder.add(stdout("1"))
    recorder.add(shown(text_plain="first"))
    recorder.add(Piece(kind=PieceKind.CLEAR, wait=True))
    assert (recorder.text("stdout").text, len(recorder.displays)) == ("1", 1)
    recorder.add(stdout("2"))
    assert (recorder.text("stdout").text, len(recorder.displays)) == ("2", 0)
    recorder.add(Piece(kind=PieceKind.CLEAR, wait=True))
    assert recorder.text("stdout").text == "2"


# Large formats


async def test_a_format_that_is_too_large_is_in_a_file_and_the_others_are_where_they_were(tmp_path: Path) -> None:
    recorder, page = recorder_at(tmp_path), "<p>ü</p>" * 200_000
    picture = base64.b64encode(b"\x89PNG" + bytes(6_000_000)).decode()
    recorder.add(shown(text_plain="a page", text_html=page, image_png=picture))
    recorder.add(shown(text_html=page))
    await recorder.keep_whole(mount_at(tmp_path))
    both, only = recorder.displays
    assert both.data == {"text/plain": "a page"}
    assert both.files == {
        "text/html": "/mnt/files/outputs/c-1.display-1-0.html", "image/png": "/mnt/files/outputs/c-1.display-1-1.png",
    }  # fmt: skip
    outputs = tmp_path / "files/outputs"
    assert (outputs / "c-1.display-1-0.html").read_text() == page
    assert (outputs / "c-1.display-1-1.png").read_bytes() == base64.b64decode(picture)
    assert only.data == {"text/plain": f"[text/html of {len(page):,} characters is in {only.files['text/html']}]"}
    assert "display 1: text/html of 1,600,000 characters is in /mnt/files/outputs" in recorder.displays_note
    assert recorder.displays_left_out == 0
    assert recorder.held_bytes < 1000


async def test_a_large_format_is_as_its_last_update_has_it(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    recorder.add(shown(display_id="d", text_html="a" * MIB))
    recorder.add(shown(text_plain="between"))
    recorder.add(shown(display_id="d", kind=PieceKind.UPDATE, text_html="b" * MIB))
    await recorder.keep_whole(mount_at(tmp_path))
    (file,) = (tmp_path / "files/outputs").iterdir()
    assert file.read_text() == "b" * MIB
    assert recorder.displays[0].files == {"text/html": f"/mnt/files/outputs/{file.name}"}


async def test_a_large_format_without_room_is_told_with_the_reason(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    recorder.add(shown(text_html="a" * MIB, text_plain="small"))
    await recorder.keep_whole(mount_at(tmp_path, most_bytes=1000))
    (told,) = recorder.displays
    assert (told.data, told.files) == ({"text/plain": "small"}, {})
    assert "is not in a file: /mnt/files is full" in recorder.displays_note
    assert list((tmp_path / "files/outputs").iterdir()) == []


async def test_a_type_that_is_a_path_is_no_path(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    names = ("../../../etc/passwd", "image/../../x", "a" * 200, "application/x+json", "image/png")
    recorder.add(Piece(kind=PieceKind.DISPLAY, display=Display(data=dict.fromkeys(names, "!" * (7 * MIB)))))
    await recorder.keep_whole(mount_at(tmp_path))
    assert sorted(one.name for one in (tmp_path / "files/outputs").iterdir()) == [
        "c-1.display-1-0.txt", "c-1.display-1-1.bin", "c-1.display-1-2.txt", "c-1.display-1-3.json",
        "c-1.display-1-4.png",
    ]  # fmt: skip
    assert len(recorder.displays_note) < 2000


async def test_a_type_that_is_too_long_is_left_out_and_told(tmp_path: Path) -> None:
    recorder, name = recorder_at(tmp_path), "x" * (34 * MIB)
    recorder.add(Piece(kind=PieceKind.DISPLAY, display=Display(data={name: "y" * MIB, "text/plain": "small"})))
    recorder.add(Piece(kind=PieceKind.DISPLAY, display=Display(data={name: "short"})))
    await recorder.keep_whole(mount_at(tmp_path))
    words = "formats left out as their types have over 200 characters: 1"
    assert [one.data for one in recorder.displays] == [{"text/plain": "small"}, {"text/plain": f"[{words}]"}]
    assert [one.files for one in recorder.displays] == [{}, {}]
    assert recorder.displays_note == f"display 1: {words}; display 2: {words}"
    assert recorder.held_bytes < 1000


def test_types_of_what_is_in_files_count_for_the_result(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    large = {"\u00fc" * 200: "y" * MIB, "b" * 200: "y" * MIB}
    recorder.add(Piece(kind=PieceKind.DISPLAY, display=Display(data=large, metadata="{}", display_id="d")))
    assert recorder.held_bytes == 400 + 200 + len("{}d")
    recorder.add(shown(display_id="d", kind=PieceKind.UPDATE, text_plain="1"))
    assert recorder.held_bytes < 100


async def test_a_flood_of_large_formats_is_kept_within_bounds(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    for number in range(60):
        recorder.add(shown(text_html=f"{number:03}" + "x" * (MIB - 3), text_plain="p"))
    await recorder.keep_whole(mount_at(tmp_path))
    assert (len(recorder.displays), recorder.displays_left_out) == (50, 10)
    assert all(one.files for one in recorder.displays)
    assert len(recorder.displays_note) < 2000
    last = tmp_path / "files/outputs" / recorder.displays[-1].files["text/html"].rpartition("/")[2]
    assert last.read_text()[:3] == "049"
    assert len((tmp_path / "files/outputs/c-1.displays.jsonl").read_text().splitlines()) == 10


def test_the_last_value_is_text_and_a_display_only_in_its_richer_formats(tmp_path: Path) -> None:
    recorder = recorder_at(tmp_path)
    recorder.add(shown(is_result=True, text_plain="1"))
    recorder.add(shown(is_result=True, text_plain="table", text_html="<table>"))
    assert recorder.text("results").text == "1\ntable"
    assert [one.data for one in recorder.displays] == [{"text/html": "<table>"}]


# What is kept


def test_the_oldest_ended_cells_make_room_for_new_ones(tmp_path: Path) -> None:
    shelf = Shelf(most_ended=3, most_spool=MIB)

    def end(name: str, size: int) -> None:
        recorder = recorder_at(tmp_path, name=name)
        tracked = Tracked(Cell(id=CellId(name), code=""), None, recorder)
        shelf.add(tracked)
        recorder.add(stdout("x" * size))
        tracked.end(CellResult(cell=tracked.id, outcome="ok", receipt=Receipt(epoch=1)))  # type: ignore[arg-type]
        shelf.ended(tracked)

    for name in "abcd":
        end(name, 1)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["spool-b", "spool-c", "spool-d"]
    end("e", MIB)
    assert [path.name for path in tmp_path.iterdir()] == ["spool-e"]


def test_a_cell_that_never_came_can_be_refused_for_good_and_is_not_taken_for_one_that_ended(tmp_path: Path) -> None:
    shelf, cell = Shelf(), Cell(id=CellId("late"), code="")
    shelf.forget(cell.id)
    with pytest.raises(NotFound, match="never sent") as never:
        shelf.find(cell.id)
    assert not was_dropped(never.value)
    with pytest.raises(Conflict, match="given up before it came"):
        shelf.known(cell, None)
    ended = Tracked(Cell(id=CellId("ended"), code=""), None, recorder_at(tmp_path))
    shelf.add(ended)
    with pytest.raises(Conflict, match="has not ended"):
        shelf.forget(ended.id)
    ended.end(CellResult(cell=ended.id, outcome="ok", receipt=Receipt(epoch=1)))  # type: ignore[arg-type]
    shelf.ended(ended)
    shelf.forget(ended.id)
    shelf.forget(ended.id)
    with pytest.raises(NotFound, match="it ended and was dropped") as dropped:
        shelf.find(ended.id)
    assert was_dropped(dropped.value)
