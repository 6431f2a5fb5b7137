"""A session of some language, through REST."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import httpx2

_MOST_S = 60.0
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Session:
    """Cells are sent to it."""

    client: httpx2.Client
    name: str

    @classmethod
    def made(cls, client: httpx2.Client, runtime: str, **sandbox: Any) -> Session:
        """A new one."""
        name = f"r-{secrets.token_hex(4)}"
        body = {"id": name, "user_id": "tester", "runtime": runtime, "sandbox": sandbox}
        answer = client.post("/v1/sessions", json=body)
        assert answer.status_code == 201, answer.text
        return cls(client, name)

    def run(self, code: str, **more: Any) -> dict[str, Any]:
        """One cell, to its result."""
        answer = self.client.post(f"/v1/sessions/{self.name}/cells", json={"code": code, **more})
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()["result"]
        return result

    def value(self, code: str) -> str:
        """What a cell that succeeds gives, or prints where the language has no values."""
        result = self.run(code)
        assert result["outcome"] == "ok", result
        return str(result["results"]["text"] or result["stdout"]["text"]).strip().strip("'")

    def begin(self, code: str, **more: Any) -> str:
        """A cell that is not waited for; its id."""
        body = {"code": code, "mode": "detach", **more}
        answer = self.client.post(f"/v1/sessions/{self.name}/cells", json=body)
        assert answer.status_code in {200, 202}, answer.text
        return str(answer.json()["id"])

    def end_of(self, cell: str) -> dict[str, Any]:
        """The result of one that was begun."""
        deadline = time.monotonic() + _MOST_S
        while time.monotonic() < deadline:
            record = self.client.get(f"/v1/sessions/{self.name}/cells/{cell}").json()
            if record.get("result") is not None:
                result: dict[str, Any] = record["result"]
                return result
            time.sleep(_LOOK_S)
        raise AssertionError(f"cell {cell} has not ended")

    def has_file(self, path: str) -> bool:
        """In its mount."""
        answer = self.client.get(f"/v1/sessions/{self.name}/mounts/files/items", params={"prefix": path})
        return answer.status_code == 200 and any(item["path"] == path for item in answer.json()["items"])

    def until_file(self, path: str) -> None:
        """Within bounds."""
        deadline = time.monotonic() + _MOST_S
        while not self.has_file(path):
            assert time.monotonic() < deadline, f"no {path}"
            time.sleep(_LOOK_S)

    def until_background(self, wanted: Callable[[list[str]], bool]) -> None:
        """Until what is listed of what runs, by its commands, is so. Within bounds."""
        deadline = time.monotonic() + _MOST_S
        while True:
            answer = self.client.get(f"/v1/sessions/{self.name}/processes")
            assert answer.status_code == 200, answer.text
            listed = [one["command"] for one in answer.json()["items"]]
            if wanted(listed):
                return
            assert time.monotonic() < deadline, listed
            time.sleep(_LOOK_S)

    def post(self, what: str, **body: Any) -> httpx2.Response:
        """To a route of the session."""
        return self.client.post(f"/v1/sessions/{self.name}/{what}", json=body or None)

    def delete(self) -> None:
        """With its sandbox."""
        assert self.client.delete(f"/v1/sessions/{self.name}").status_code in {204, 404}
