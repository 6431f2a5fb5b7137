"""Cells through REST, and what their results tell of corrections."""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Any

import httpx2

# In cells of these tests: data as a helper returns it, and the pair that a helper returns.
DEFINE = """
import sys as _sys
tool = _sys.modules["workbench_guest.corrections.desk"].desk.dress
tool_call = _sys.modules["workbench_guest.helpers.dressing"].dressed
del _sys
"""


@dataclass(frozen=True, slots=True)
class Told:
    """What a cell's result says."""

    result: dict[str, Any]

    @property
    def ok(self) -> bool:
        """No exception ended it."""
        return bool(self.result["outcome"] == "ok")

    @property
    def error(self) -> str:
        """The class of what it raised."""
        return self.result["error"]["name"] if self.result["error"] else ""

    @property
    def stdout(self) -> str:
        """Without ends."""
        return str(self.result["stdout"]["text"]).strip()

    @property
    def value(self) -> str:
        """The text of the last value."""
        return str(self.result["results"]["text"]).strip()

    @property
    def traceback(self) -> str:
        """With notes."""
        return str(self.result["error"]["traceback"])

    @property
    def items(self) -> list[dict[str, Any]]:
        """Of the report."""
        return list(self.result["corrections"])

    def rules(self, kind: str) -> set[str]:
        """Of the report, of one kind."""
        return {one["rule"] for one in self.items if one["kind"] == kind}


@dataclass(frozen=True, slots=True)
class Notebook:
    """A session that cells are sent to."""

    client: httpx2.Client
    name: str

    @classmethod
    def made(cls, client: httpx2.Client, **sandbox: Any) -> Notebook:
        """A new one, with the two functions in it."""
        name = f"c-{secrets.token_hex(4)}"
        body = {"id": name, "user_id": "tester", "sandbox": {"snapshots": False, **sandbox}}
        answer = client.post("/v1/sessions", json=body)
        assert answer.status_code == 201, answer.text
        book = cls(client, name)
        assert book.run(DEFINE).ok
        return book

    def run(self, code: str) -> Told:
        """One cell, to its end."""
        answer = self.client.post(f"/v1/sessions/{self.name}/cells", json={"code": code})
        assert answer.status_code == 200, answer.text
        return Told(answer.json()["result"])

    def forget(self) -> None:
        """What cells before have bound; the two functions stay."""
        assert self.run("[globals().pop(_name) for _name in [*globals()] if _name in _own()] and None").ok

    def delete(self) -> None:
        """With its sandbox."""
        assert self.client.delete(f"/v1/sessions/{self.name}").status_code in {204, 404}
