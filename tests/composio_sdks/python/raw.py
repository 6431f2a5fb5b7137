"""Requests as they are, for what no SDK can be made to send: a list of them in, a list of answers out, both as JSON."""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.request
from typing import Any

_WAIT_S = 60.0


def answered(one: dict[str, Any]) -> dict[str, Any]:
    """Status and body of one."""
    body = json.dumps(one["json"]).encode() if "json" in one else None
    headers = {"content-type": "application/json"} if body is not None else {}
    request = urllib.request.Request(one["url"], body, headers | one["headers"], method=one["method"])
    try:
        with urllib.request.urlopen(request, timeout=_WAIT_S) as answer:
            return {"status": answer.status, "json": _read(answer.read())}
    except urllib.error.HTTPError as refused:
        return {"status": refused.code, "json": _read(refused.read())}


def _read(body: bytes) -> Any:
    """As JSON, also where it comes as the one event of a stream."""
    lines = [line.removeprefix(b"data: ") for line in body.splitlines() if line.startswith(b"data: ")]
    return json.loads(lines[-1] if lines else body or b"null")


if __name__ == "__main__":
    print(json.dumps([answered(one) for one in json.load(sys.stdin)]))
