"""Operations as JSON."""

from __future__ import annotations

import json

from workbench.toolkits.operations import Body, BodyField, BodyKind, Media, Operation, Parameter, packed, unpacked


def test_what_is_packed_comes_back_and_what_is_usual_takes_no_room() -> None:
    plain = Operation(method="GET", base_url="https://x.example", path="/a")
    assert packed(plain) == {"m": "GET", "u": "https://x.example", "p": "/a"}
    full = Operation(
        method="POST",
        base_url="https://x.example",
        path="/a/{id}",
        parameters=(
            Parameter(name="id", place="path", argument="path_id", required=True),
            Parameter(name="v", place="header", fixed="1"),
            Parameter(name="q", place="query", style="deepObject", explode=True),
        ),
        body=Body(
            kind=BodyKind.MULTIPART,
            required=True,
            fields=(BodyField(name="f", is_file=True, content_type="image/png"), BodyField(name="g", explode=False)),
        ),
        media=Media(path="/upload", argument="f"),
        idempotency_header="Idempotency-Key",
        accept="text/csv",
    )
    for one in (plain, full):
        back = unpacked(json.loads(json.dumps(packed(one))))
        assert back == one
    assert isinstance(unpacked(json.loads(json.dumps(packed(full)))).body.kind, BodyKind)  # type: ignore[union-attr]
