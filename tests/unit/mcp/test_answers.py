"""An answer arrives whole: as large as its transport takes, and with pictures that are some."""

from __future__ import annotations

import base64
import json
from typing import Any

import mcp_types as types
import pytest

from workbench.mcp.answers import Answer, Next
from workbench.mcp.pictures import pictures_in

PNG, JPEG, GIF = b"\x89PNG\r\n\x1a\n", b"\xff\xd8\xff\xe0", b"GIF89a"
MOST = 900_000


def displayed(raw: bytes, kind: str = "image/png") -> dict[str, str]:
    return {kind: base64.b64encode(raw).decode(), "text/plain": "<Figure>"}


def of_workbench(**more: str) -> dict[str, Any]:
    session = {"id": "s", "instructions": "Go on."}
    return {"data": {"stdout": "", **more, "session": session}, "error": None, "successful": True}


def size(message: types.CallToolResult) -> int:
    return len(message.model_dump_json(by_alias=True, exclude_unset=True).encode())


def images(message: types.CallToolResult) -> list[types.ImageContent]:
    return [one for one in message.content if isinstance(one, types.ImageContent)]


def structured(message: types.CallToolResult) -> dict[str, Any]:
    told: dict[str, Any] | None = message.structured_content
    assert told is not None
    return told


def written(message: types.CallToolResult) -> dict[str, Any]:
    text = message.content[0]
    assert isinstance(text, types.TextContent)
    told: dict[str, Any] = json.loads(text.text)
    return told


def test_what_fits_is_told_as_it_is() -> None:
    answer = Answer(structured=of_workbench(stdout="x" * 40_000), pictures=pictures_in((displayed(PNG + b"1" * 1000),)))
    message = answer.result(MOST)
    assert structured(message) == written(message) == answer.structured
    assert len(images(message)) == 1


def test_pictures_are_left_out_from_the_end_until_the_rest_fits_and_it_is_said() -> None:
    answer = Answer(structured=of_workbench(), pictures=pictures_in((displayed(PNG + b"1" * 300_000),) * 4))
    message = answer.result(MOST)
    assert size(message) <= MOST
    assert len(images(message)) == 2
    words = structured(message)["data"]["session"]["instructions"]
    assert words == written(message)["data"]["session"]["instructions"]
    assert "2 pictures are left out for their size (600,0" in words
    assert "/mnt/files" in words


def test_a_picture_that_programs_have_in_the_structure_too_is_rather_shown_once_than_not_at_all() -> None:
    shown = displayed(PNG + b"1" * 400_000)
    answer = Answer(
        structured={"success": True, "display_outputs": [shown]},
        text={"success": True, "display_outputs": ["a picture"]},
        pictures=pictures_in((shown,)),
    )
    message = answer.result(MOST)
    assert size(message) <= MOST
    assert len(images(message)) == 1
    assert "left out here" in structured(message)["display_outputs"][0]["image/png"]
    assert "hint" not in structured(message)
    assert len(images(answer.result(8 << 20))) == 1
    assert structured(answer.result(8 << 20))["display_outputs"] == [shown]


@pytest.mark.parametrize("character", ["x", "\x01", "\U0001f600", '"'])
def test_texts_are_shortened_when_their_escapes_are_what_is_too_large(character: str) -> None:
    long = character * 40_000
    step = Next(tool="tool", arguments={"session_id": "s", "code": "y" * 4000})
    answer = Answer(
        structured=of_workbench(stdout=long, stderr=long, results=long), next=step, meta={"all": [long] * 20}
    )
    message = answer.result(MOST)
    assert size(message) <= MOST
    assert structured(message)["next"] == written(message)["next"] == step.shown()
    assert structured(message)["data"]["stdout"].endswith(character * 100)


def test_any_number_of_rows_and_names_fits() -> None:
    rows = [{f"name-{n}": "x" * 400 for n in range(300)} for _ in range(400)]
    message = Answer(structured={"success": True, "variables": rows[:40], "names": rows[0]}).result(MOST)
    assert size(message) <= MOST


@pytest.mark.parametrize(
    ("kind", "raw"),
    [("image/png", PNG), ("image/jpeg", JPEG), ("image/gif", GIF), ("image/webp", b"RIFF1234WEBP")],
)
def test_pictures_of_each_kind_are_known_by_how_they_begin(kind: str, raw: bytes) -> None:
    (good,) = pictures_in((displayed(raw, kind),))
    assert (good.mime_type, good.problem) == (kind, "")
    (bad,) = pictures_in((displayed(b"<script>" + raw, kind),))
    assert f"what was displayed as {kind} is none" in bad.problem


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"image/png": "not base64 !!"}, "What was displayed as image/png is not base64."),
        ({"image/png": ""}, "What was displayed as image/png is none."),
        (displayed(PNG + b"1" * 5_000_001), "A picture of 5,000,009 bytes is left out"),
    ],
)
def test_what_is_no_picture_or_too_large_is_described_and_not_shown(data: dict[str, str], words: str) -> None:
    found = {"success": True, "hint": "Before.", "display_outputs": [data]}
    message = Answer(structured=found, pictures=pictures_in((data,))).result(20 << 20)
    assert images(message) == []
    assert structured(message)["hint"].startswith(f"Before. {words}")
    assert size(message) < 10_000


def test_of_two_kinds_the_one_that_is_a_picture_is_shown() -> None:
    (one,) = pictures_in(({"image/png": "bm9uZQ==", **displayed(JPEG, "image/jpeg")},))
    assert (one.mime_type, one.problem) == ("image/jpeg", "")
