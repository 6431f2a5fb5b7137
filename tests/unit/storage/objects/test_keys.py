"""Names of objects: reversible, and of characters that every store takes."""

from __future__ import annotations

import os
import random

import pytest

from workbench.storage.objects.keys import name_of, path_of


@pytest.mark.parametrize(
    ("path", "name"),
    [
        (b"plain/a b.txt", "plain/a b.txt"),
        ("ü/😀".encode(), "ü/😀"),
        (b"100%", "100%25"),
        (b"%41", "%2541"),
        (b"new\nline", "new%0Aline"),
        (b"back\\slash", "back%5Cslash"),
        (b"not-\xff-text", "not-%FF-text"),
        (b"a+b&c", "a+b&c"),
        ("\ufffe \uffff \ufffd".encode(), "%EF%BF%BE %EF%BF%BF \ufffd"),
    ],
)
def test_a_name_is_readable_and_leads_back(path: bytes, name: str) -> None:
    assert name_of(path) == name
    assert path_of(name) == path


def test_any_bytes_lead_back() -> None:
    chance = random.Random(7)
    for _ in range(2000):
        path = bytes(chance.choices([*range(1, 256)], k=chance.randrange(1, 20)))
        name = name_of(path)
        assert path_of(name) == path
        assert name.encode().decode().isprintable() or any(ord(one) > 127 for one in name)


def test_two_files_never_share_a_name() -> None:
    paths = {bytes([one, other]) for one in range(1, 256) for other in (*b"%5CF", 10, 200)}
    assert len({name_of(path) for path in paths}) == len(paths)
    assert os.sep not in name_of(b"\\")
