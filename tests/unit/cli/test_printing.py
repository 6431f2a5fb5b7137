"""Pieces of a cell on our own stdout and stderr, and readers that are slow or gone."""

from __future__ import annotations

import asyncio
import base64
import os
import struct

import pytest

from workbench.cli.printing import Output
from workbench.descriptor_writer import DescriptorWriter
from workbench.model.execution import CellError, Display, Piece, PieceKind

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + struct.pack(">I4sII", 13, b"IHDR", 640, 480) + b"x" * 3000).decode()


def shown(capfd: pytest.CaptureFixture[str], *pieces: Piece) -> tuple[str, str]:
    async def show() -> None:
        output = Output()
        for piece in pieces:
            await output.piece(piece)

    asyncio.run(show())
    return capfd.readouterr()


def stdout(text: str) -> Piece:
    return Piece(kind=PieceKind.STDOUT, text=text)


def display(data: dict[str, str], *, is_result: bool = False) -> Piece:
    return Piece(kind=PieceKind.DISPLAY, display=Display(data=data, is_result=is_result))


def error(name: str, message: str) -> Piece:
    return Piece(kind=PieceKind.ERROR, error=CellError(name=name, message=message, traceback=f"Traceback\n{name}"))


def test_streams_go_where_they_belong_and_the_last_value_has_its_own_line(capfd: pytest.CaptureFixture[str]) -> None:
    value = display({"text/plain": "42"}, is_result=True)
    said = Piece(kind=PieceKind.STDERR, text="warned\n")
    assert shown(capfd, stdout("ä"), said, value) == ("ä\n42\n", "warned\n")
    assert shown(capfd, stdout("whole line\n"), value) == ("whole line\n42\n", "")


def test_a_picture_is_one_line_that_says_what_it_is(capfd: pytest.CaptureFixture[str]) -> None:
    out, err = shown(capfd, display({"text/plain": "<Figure>", "image/png": PNG}))
    assert (out, err) == ("", "[workbench] image/png, 640x480, 3 KB; --json has it\n")
    broken = display({"image/png": "!"})
    assert shown(capfd, broken)[1] == "[workbench] image/png, 0 bytes; --json has it\n"


def test_a_table_is_shown_as_text_and_html_alone_is_named(capfd: pytest.CaptureFixture[str]) -> None:
    assert shown(capfd, display({"text/plain": "a b", "text/html": "<b>"})) == ("a b\n", "")
    assert shown(capfd, display({"text/html": "<b>x</b>"}))[1] == "[workbench] text/html, 8 bytes; --json has it\n"


def test_an_exception_is_told_once_and_an_exit_only_if_it_has_words(capfd: pytest.CaptureFixture[str]) -> None:
    assert shown(capfd, error("ValueError", "x"), error("ValueError", "x")) == ("", "Traceback\nValueError\n")
    for quiet in ("3", "0", "1", "None", ""):
        assert shown(capfd, error("SystemExit", quiet)) == ("", "")
    assert shown(capfd, error("SystemExit", "no such file")) == ("", "no such file\n")


def test_half_a_surrogate_pair_does_not_end_the_printing(capfd: pytest.CaptureFixture[str]) -> None:
    assert shown(capfd, stdout("a\ud800b\n"))[0] == "a?b\n"


async def test_a_reader_that_stands_still_blocks_nothing_else() -> None:
    reader, pipe = os.pipe()
    try:
        writing = asyncio.create_task(DescriptorWriter(pipe).write(b"x" * 1_000_000))
        got = 0
        done, _ = await asyncio.wait([writing], timeout=0.05)
        assert not done
        while got < 1_000_000:
            got += len(await asyncio.to_thread(os.read, reader, 65536))
        await asyncio.wait_for(writing, 10)
    finally:
        os.close(reader)
        os.close(pipe)


async def test_a_descriptor_that_does_not_block_is_waited_for() -> None:
    reader, pipe = os.pipe()
    os.set_blocking(pipe, False)
    try:
        writing = asyncio.create_task(DescriptorWriter(pipe).write(b"x" * 300_000))
        got = 0
        while got < 300_000:
            got += len(await asyncio.to_thread(os.read, reader, 65536))
        await asyncio.wait_for(writing, 10)
    finally:
        os.close(reader)
        os.close(pipe)


async def test_a_reader_that_left_is_an_error_of_the_write() -> None:
    reader, pipe = os.pipe()
    os.close(reader)
    try:
        with pytest.raises(BrokenPipeError):
            await asyncio.wait_for(DescriptorWriter(pipe).write(b"x"), 10)
    finally:
        os.close(pipe)
