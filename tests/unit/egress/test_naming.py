"""Names of fetched files: one name, whatever a server says."""

from __future__ import annotations

import httpx2
import pytest

from workbench.egress.naming import suggested_name

PLAIN = httpx2.URL("https://a.example/data/in.csv?x=/y.txt")


@pytest.mark.parametrize(
    ("header", "name"),
    [
        (b"", "in.csv"),
        (b"inline", "in.csv"),
        (b'attachment; filename="report.pdf"', "report.pdf"),
        (b"attachment; filename=report.pdf; size=3", "report.pdf"),
        (b'attachment; FileName = "a \\"b\\" c.txt"', 'a "b" c.txt'),
        (b"attachment; filename=\"x.txt\"; filename*=UTF-8''%e2%82%ac%20rates.txt", "\u20ac rates.txt"),
        (b"attachment; filename*=iso-8859-1'en'%A3.txt", "\u00a3.txt"),
        (b"attachment; filename*=utf-7''x.txt", "in.csv"),
        ('attachment; filename="\u00e9.txt"'.encode(), "\u00e9.txt"),
        ('attachment; filename="\u00e9.txt"'.encode("latin-1"), "\u00e9.txt"),
        (b'attachment; filename="../../etc/passwd"', "passwd"),
        (b'attachment; filename="C:\\\\Users\\\\me\\\\x.doc"', "x.doc"),
        (b"attachment; filename*=UTF-8''..%2F..%2Fetc%2Fpasswd", "passwd"),
        (b"attachment; filename*=UTF-8''a%00b%0Ac%1B%5B31m.txt", "abc[31m.txt"),
        (b"attachment; filename*=UTF-8''%E2%80%AEtxt.exe", "txt.exe"),
        (b'attachment; filename=".."', "in.csv"),
        (b'attachment; filename="."', "in.csv"),
        (b'attachment; filename="///"', "in.csv"),
        (b'attachment; filename=" "', "in.csv"),
        (b'attachment; filename="."; ' + b"x" * 5000, "in.csv"),
        (b'attachment; filename="folder/"', "folder"),
        (b"attachment; filename=.bashrc", ".bashrc"),
    ],
)
def test_a_name_is_one_name(header: bytes, name: str) -> None:
    assert suggested_name(header, PLAIN) == name


@pytest.mark.parametrize(
    ("url", "name"),
    [
        ("https://a.example/", "download"),
        ("https://a.example", "download"),
        ("https://a.example/..%2f..%2fx", "x"),
        ("https://a.example/%2e%2e", "download"),
        ("https://a.example/a%5cb", "b"),
        ("https://a.example/%F0%9F%98%80.txt", "\U0001f600.txt"),
        ("https://a.example/%ff%fe.txt", "\ufffd\ufffd.txt"),
        ("https://a.example/x?name=../y", "x"),
    ],
)
def test_without_the_header_the_url_has_the_name(url: str, name: str) -> None:
    assert suggested_name(b"", httpx2.URL(url)) == name


def test_the_url_that_was_asked_for_goes_before_where_it_led() -> None:
    assert suggested_name(b"", PLAIN, httpx2.URL("https://b.example/blob-7")) == "in.csv"
    assert suggested_name(b"", httpx2.URL("https://a.example/"), httpx2.URL("https://b.example/blob-7")) == "blob-7"


@pytest.mark.parametrize(
    ("stem", "ending"), [("x" * 400, ".csv"), ("\u20ac" * 200, ".csv"), ("x" * 3, "." + "y" * 400)]
)
def test_a_long_name_fits_a_folder_and_keeps_its_ending(stem: str, ending: str) -> None:
    name = suggested_name(f'attachment; filename="{stem}{ending}"'.encode())
    assert 250 <= len(name.encode()) <= 255
    assert name.endswith(".csv") or ending != ".csv"
