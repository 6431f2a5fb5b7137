"""Messages of the Jupyter protocol: ours are signed as jupyter_client wants them, others' are taken apart with care."""

from __future__ import annotations

import pytest
from jupyter_client.session import Session

from workbench.kernels.messages import Signer, parse


def test_a_request_of_ours_is_one_that_jupyter_client_accepts() -> None:
    identity, frames = Signer("secret").request("execute_request", {"code": "1 + 1 # é"})
    session = Session(key=b"secret")
    _, parts = session.feed_identities([b"route", *frames])
    message = session.deserialize(parts)
    assert message["header"]["msg_id"] == identity
    assert message["content"] == {"code": "1 + 1 # é"}


def test_a_message_of_jupyter_client_is_understood_and_its_key_checked() -> None:
    session = Session(key=b"secret")
    sent = session.msg("stream", {"name": "stdout", "text": "hi"}, parent={"msg_id": "the-parent"})
    frames = [b"topic", *session.serialize(sent)]
    message = parse(frames)
    assert message is not None
    assert (message.kind, message.parent, message.request) == ("stream", "the-parent", sent["header"]["msg_id"])
    assert Signer("secret").signed_by_us(message)
    assert not Signer("guess").signed_by_us(message)


@pytest.mark.parametrize(
    "frames",
    [
        [],
        [b""],
        [b"<IDS|MSG>"],
        [b"<IDS|MSG>", b"", b"{}", b"{}", b"{}"],
        [b"<IDS|MSG>", b"", b"{", b"{}", b"{}", b"{}"],
        [b"<IDS|MSG>", b"", b"[]", b"{}", b"{}", b"{}"],
        [b"<IDS|MSG>", b"", b'{"msg_id": 5}', b"{}", b"{}", b"{}"],
        [b"<IDS|MSG>", b"", b"\xff", b"{}", b"{}", b"{}"],
        [b"<IDS|MSG>", b"", b'{"a":' * 100_000, b"{}", b"{}", b"{}"],
    ],
)
def test_what_is_no_message_is_none(frames: list[bytes]) -> None:
    assert parse(frames) is None
