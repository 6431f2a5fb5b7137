"""A link is good for what it was made for, and for nothing else."""

from __future__ import annotations

from dataclasses import fields, replace

import pytest

from workbench.core.links import LinkSigner
from workbench.core.mount_requests import FileLink
from workbench.model.ids import DEFAULT_PROJECT, ProjectId, SessionId
from workbench.model.mounts import FilePath, LinkAction

BORN = "2030-01-01T00:00:00.000000Z"
LINK = FileLink(
    session=SessionId("one"),
    project=DEFAULT_PROJECT,
    mount="files",
    path=FilePath("data/in.csv"),
    action=LinkAction.DOWNLOAD,
    expires=1_900_000_000,
)
OTHERS = {
    "session": replace(LINK, session=SessionId("two")),
    "project": replace(LINK, project=ProjectId("others")),
    "mount": replace(LINK, mount="more"),
    "path": replace(LINK, path=FilePath("data/in.csv2")),
    "action": replace(LINK, action=LinkAction.UPLOAD),
    "expires": replace(LINK, expires=LINK.expires + 1),
    "size": replace(LINK, size=0),
    "upload": replace(LINK, upload="0123"),
}


@pytest.fixture
def signer() -> LinkSigner:
    return LinkSigner(lambda: b"a secret of thirty-two bytes....")


def test_our_own_is_accepted(signer: LinkSigner) -> None:
    signature = signer.signature(LINK, BORN)
    assert signer.accepts(LINK, BORN, signature)
    assert signature == signer.signature(LINK, BORN)
    assert len(signature) == 43
    assert signature.replace("-", "").replace("_", "").isalnum(), "it needs no quoting in an address"


@pytest.mark.parametrize("part", [one.name for one in fields(FileLink)])
def test_every_part_of_it_is_signed(signer: LinkSigner, part: str) -> None:
    assert not signer.accepts(OTHERS[part], BORN, signer.signature(LINK, BORN))


def test_another_session_of_the_same_name_is_another(signer: LinkSigner) -> None:
    assert not signer.accepts(LINK, "2030-01-01T00:00:00.000001Z", signer.signature(LINK, BORN))


def test_what_moves_from_one_part_to_the_next_is_another_link(signer: LinkSigner) -> None:
    signatures = {
        signer.signature(replace(LINK, mount=mount, path=FilePath(path)), BORN)
        for mount, path in (
            ("files", "data"),
            ("file", "sdata"),
            ("filesdata", ""),
            ("", "filesdata"),
            ("5:files", "data"),
        )
    }
    assert len(signatures) == 5


def test_no_cut_longer_or_changed_signature_is_accepted(signer: LinkSigner) -> None:
    good = signer.signature(LINK, BORN)
    wrong = {good[:length] for length in range(len(good))}
    wrong |= {good + more for more in ("=", "A", " ", "\n", good)}
    wrong |= {good[:place] + ("A" if good[place] != "A" else "B") + good[place + 1 :] for place in range(len(good))}
    wrong |= {good.swapcase(), "", "é" * 43, "\ud800" * 43, "\0" * 43}
    assert not [one for one in wrong if signer.accepts(LINK, BORN, one)]


def test_another_secret_signs_another_way(signer: LinkSigner) -> None:
    assert not LinkSigner(lambda: b"another").accepts(LINK, BORN, signer.signature(LINK, BORN))
