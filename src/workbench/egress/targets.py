"""URLs that may be asked for, and where a redirect leads. What is behind them is not looked at here."""

from __future__ import annotations

import re

import httpx2

from workbench.errors import Denied, InvalidRequest

# Longer than any that a browser sends.
_MOST_CHARACTERS = 8192
_HOST = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*\.?|[0-9A-Fa-f:.]+")
_MOST_HOST = 253
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_SHOWN = 200


def target_of(text: str) -> httpx2.URL:
    """One that can be asked for, without its fragment.

    Raises:
        InvalidRequest: it cannot; the message says why, and has nothing of it that may be secret.
    """
    if len(text) > _MOST_CHARACTERS:
        raise _unusable(f"it has {len(text)} characters, and may have {_MOST_CHARACTERS}")
    if _CONTROL.search(text):
        raise _unusable("it has a control character or half a character in it")
    try:
        url = httpx2.URL(text)
    except (httpx2.InvalidURL, UnicodeError, ValueError):
        raise _unusable("it cannot be read as one; write it like https://example.com/data.csv") from None
    _check_parts(url, text)
    return url.copy_with(fragment=None)


def _check_parts(url: httpx2.URL, text: str) -> None:
    # BARRIER: other schemes are files and other programs of this machine; held by tests/unit/egress/test_targets.py.
    if url.scheme not in ("http", "https"):
        begins = f"{url.scheme[:20]}:" if url.scheme else text[:20].partition("@")[0]
        raise _unusable(f"it begins with {begins!r}, and only http:// and https:// are fetched")
    if not url.host:
        raise _unusable("it names no host; write it like https://example.com/data.csv")
    # What is before an @ is a secret most of the time, and would be in records; what looks like a host there is a trap.
    if url.userinfo or "@" in re.split(r"[/?#]", text.partition("//")[2], maxsplit=1)[0]:
        raise _unusable("it has a user or a password before its host; leave those out, or use a link that needs none")
    host = url.raw_host.decode("ascii", "replace")
    if len(host) > _MOST_HOST or not _HOST.fullmatch(host):
        raise _unusable(f"{host[:60]!r} is neither a host name nor an address")
    if url.port is not None and not 0 < url.port < 65_536:
        raise _unusable(f"there is no port {url.port}")


def next_target(url: httpx2.URL, location: str) -> httpx2.URL:
    """Where a redirect from `url` leads.

    Raises:
        InvalidRequest: to something that cannot be asked for.
        Denied: from https to http.
    """
    if _CONTROL.search(location):
        raise _unusable("it has a control character in it")
    try:
        joined = str(url.join(location))
    except (httpx2.InvalidURL, UnicodeError, ValueError):
        raise _unusable("it cannot be read as one") from None
    there = target_of(joined)
    # BARRIER: what was asked for by TLS would come in the clear, from whoever is in between; held by
    # tests/egress/test_redirects.py.
    if url.scheme == "https" and there.scheme == "http":
        raise Denied(f"the redirect leads from https to {shown(there)}, which anybody on the way can read and change")
    return there


def shown(url: httpx2.URL) -> str:
    """For messages: without the query, in which signed links have their secret."""
    text = f"{url.scheme}://{url.netloc.decode('ascii')}{url.raw_path.decode('ascii').partition('?')[0]}"
    return text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"


def _unusable(why: str) -> InvalidRequest:
    return InvalidRequest(f"not a URL that can be fetched: {why}")
