"""A person at their own computer, who connects an account by the link that they were given.

    python -m tests.product_documents.triage.person LINK          goes to the service, agrees there, and comes back
    python -m tests.product_documents.triage.person LINK token    types in the token that is on standard input

Run where names lead to the test's own services; what is there to be seen at the end is printed.
"""

from __future__ import annotations

import sys
from urllib.parse import parse_qsl, urlsplit

import httpx2

_WAIT_S = 30.0


def main(link: str, by: str) -> None:
    with httpx2.Client(timeout=_WAIT_S, trust_env=False, follow_redirects=False) as browser:
        assert browser.get(link).status_code == 200
        last = _typed_in(browser, link) if by == "token" else _agreed(browser, link)
        assert last.status_code == 200, last.text
        print(last.text)


def _typed_in(browser: httpx2.Client, link: str) -> httpx2.Response:
    answer = browser.post(link, data={"kind": "BEARER_TOKEN", "field.token": sys.stdin.read()})
    assert answer.status_code == 303, answer.text
    return browser.get(str(httpx2.URL(link).join(answer.headers["location"])))


def _agreed(browser: httpx2.Client, link: str) -> httpx2.Response:
    there = browser.get(f"{link}/authorize").headers["location"]
    consent = browser.get(there)
    assert consent.status_code == 200, consent.text
    assert "Agree" in consent.text
    parts = urlsplit(there)
    back = browser.post(
        f"{parts.scheme}://{parts.netloc}/authorize", data={**dict(parse_qsl(parts.query)), "agreed": "yes"}
    )
    return browser.get(back.headers["location"])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "")
