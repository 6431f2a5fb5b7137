"""URLs: what can be asked for, and where a redirect leads."""

from __future__ import annotations

import pytest

from workbench.egress.targets import next_target, shown, target_of
from workbench.errors import Denied, InvalidRequest


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("file:///etc/passwd", "begins with 'file:'"),
        ("FILE:///etc/passwd", "begins with 'file:'"),
        ("ftp://a.example/x", "begins with 'ftp:'"),
        ("gopher://a.example/x", "begins with 'gopher:'"),
        ("data:text/plain,x", "begins with 'data:'"),
        ("ws://a.example/", "begins with 'ws:'"),
        ("unix:///run/x.sock", "begins with 'unix:'"),
        ("http+unix://x/y", r"begins with 'http\+unix:'"),
        ("//a.example/x", "begins with '//a.example/x'"),
        ("a.example/x", "begins with 'a.example/x'"),
        ("", "begins with ''"),
        ("http://", "names no host"),
        ("http:///x", "names no host"),
        ("http:x", "names no host"),
        ("http://user@a.example/", "user or a password"),
        ("http://@a.example/", "user or a password"),
        ("http://good.example\\@a.example/", "user or a password"),
        ("http://good.example%20@a.example/", "user or a password"),
        ("http://a.example:0/", "no port 0"),
        ("http://a.example:65536/", "no port 65536"),
        ("http://a.example:x/", "cannot be read"),
        ("http://a b/", "neither a host name nor an address"),
        ("http://a%00.example/", "neither a host name nor an address"),
        ("http://[fe80::1%25eth0]/", "neither a host name nor an address"),
        ("http://[fe80::1%eth0]/", "neither a host name nor an address"),
        ("http://" + "a" * 64 + ".example/", "neither a host name nor an address"),
        ("http://" + "a." * 127 + "example/", "neither a host name nor an address"),
        ("http://[::1/", "cannot be read"),
        ("http://[x]/", "cannot be read"),
        ("http://a.example/\r\nX: y", "control character"),
        ("http://a.example/\0", "control character"),
        ("http://a.example/\ud800", "half a character"),
        ("http://\u2460.example/", "cannot be read"),
        ("http://a.example/" + "x" * 8192, "may have 8192"),
    ],
)
def test_a_url_that_cannot_be_asked_for_is_refused_with_its_reason(text: str, why: str) -> None:
    with pytest.raises(InvalidRequest, match=why):
        target_of(text)


def test_a_password_in_a_url_is_in_no_message() -> None:
    for text in (
        "https://me:hunter2@a.example/",
        "https://me:hunter2@a.example:0/",
        "me:hunter2@a.example",
        "x://me:hunter2@a",
    ):
        with pytest.raises(InvalidRequest) as caught:
            target_of(text)
        assert "hunter2" not in caught.value.message


@pytest.mark.parametrize(
    ("text", "host", "port", "path"),
    [
        ("HTTPS://A.Example/x?y=z#part", b"a.example", None, b"/x?y=z"),
        ("http://a.example", b"a.example", None, b"/"),
        ("http://a.example:8080/b c/\u00e9", b"a.example", 8080, b"/b%20c/%C3%A9"),
        ("http://b\u00fccher.example/", b"xn--bcher-kva.example", None, b"/"),
        ("http://[2606:4700::1]:81/", b"2606:4700::1", 81, b"/"),
        ("http://a_b.example./@x", b"a_b.example.", None, b"/@x"),
    ],
)
def test_a_url_that_can_be_asked_for_is_taken_apart_once(text: str, host: bytes, port: int | None, path: bytes) -> None:
    url = target_of(text)
    assert (url.raw_host, url.port, url.raw_path, url.fragment) == (host, port, path, "")


@pytest.mark.parametrize(
    ("location", "there"),
    [
        ("/c?d=e", "https://a.example/c?d=e"),
        ("c", "https://a.example/x/c"),
        ("//b.example/c", "https://b.example/c"),
        ("https://b.example:444/#top", "https://b.example:444/"),
        ("\u00e9 f", "https://a.example/x/%C3%A9%20f"),
        # A browser takes these for slashes; to us they are a path of the same host.
        ("\\\\b.example/c", "https://a.example/x/\\\\b.example/c"),
    ],
)
def test_a_redirect_leads_there(location: str, there: str) -> None:
    assert str(next_target(target_of("https://a.example/x/y?z=1"), location)) == there


@pytest.mark.parametrize(
    "location", ["file:///etc/passwd", "https://u:p@b.example/", "https://b.example:0/", "https://[x]/"]
)
def test_a_redirect_to_what_cannot_be_asked_for_is_refused(location: str) -> None:
    with pytest.raises(InvalidRequest):
        next_target(target_of("https://a.example/"), location)


def test_a_redirect_from_https_to_http_is_refused_and_the_other_way_is_not() -> None:
    with pytest.raises(Denied, match=r"from https to http://a\.example/x, "):
        next_target(target_of("https://a.example/"), "http://a.example/x?secret")
    assert str(next_target(target_of("http://a.example/"), "https://a.example/x")) == "https://a.example/x"


def test_messages_have_no_query_and_an_end() -> None:
    assert shown(target_of("https://a.example:8443/b?sig=secret")) == "https://a.example:8443/b"
    assert len(shown(target_of("https://a.example/" + "x" * 5000))) < 210
