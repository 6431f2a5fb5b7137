"""REST, without any library of ours: requests as anybody sends them, in each of the three modes."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import httpx2
from tests.doors.door import PLAIN, Described, Lying, Named, Past, Ran, Refused, Said, displays_of

_WAIT_S = 30


class RestDoor:
    """One kept-alive client; `mode` is how cells and commands are run."""

    makes_what_it_runs_in = False

    def __init__(self, client: httpx2.Client, mode: str) -> None:
        self.name = f"REST, {mode}"
        self._client = client
        self._mode = mode

    def create(self, session: str, size: str = "standard", runtime: str = "python") -> Described:
        body = {"id": session, "runtime": runtime, "sandbox": {"sandbox_size": size}, "eager": True}
        return _described(self._ask("POST", "/v1/sessions", body))

    def describe(self, session: str) -> Described:
        return _described(self._ask("GET", f"/v1/sessions/{session}"))

    def run(self, session: str, code: str, said: Said = PLAIN) -> Ran:
        return self._run(f"/v1/sessions/{session}/cells", {"code": code}, said)

    def bash(self, session: str, command: str, said: Said = PLAIN) -> Ran:
        return self._run(f"/v1/sessions/{session}/commands", {"command": command}, said)

    def _run(self, path: str, what: dict[str, str], said: Said) -> Ran:
        body = {
            **what,
            "limit_s": said.limit_s,
            "mode": self._mode,
            "thought": said.thought,
            "current_step": said.step,
            "current_step_metric": said.metric,
        }
        headers = {"idempotency-key": said.idempotency_key} if said.idempotency_key else {}
        run = self._streamed if self._mode == "stream" else self._posted
        cell = run(path, body, headers)
        while cell["status"] == "pending":
            cell = self._ask("GET", f"{path}/{cell['id']}?wait_s={_WAIT_S}")
        return ran_of(cell)

    def _posted(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        cell: dict[str, Any] = self._ask("POST", path, body, headers)
        return cell

    def _streamed(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> dict[str, Any]:
        """The cell at the end of its events; what they said is what its result says."""
        said, name, end = "", "", None
        with self._client.stream("POST", path, json=body, headers=headers) as answer:
            if answer.status_code != 200:
                answer.read()
                raise _refused(answer)
            for line in answer.iter_lines():
                field, _, value = line.partition(": ")
                if field == "event":
                    name = value
                elif field == "data" and name == "piece" and json.loads(value)["kind"] == "stdout":
                    said += json.loads(value)["text"]
                elif field == "data" and name == "end":
                    end = json.loads(value)
        assert isinstance(end, dict)
        if end["result"] is not None and end["result"]["stdout"]["file_path"] is None:
            assert said == end["result"]["stdout"]["text"]
        return end

    def variables(self, session: str) -> tuple[Named, ...]:
        found = self._ask("GET", f"/v1/sessions/{session}/variables")["items"]
        return tuple(Named(name=one["name"], type=one["type"], preview=one["preview"]) for one in found)

    def interrupt(self, session: str) -> None:
        self._ask("POST", f"/v1/sessions/{session}/interrupt")

    def restart(self, session: str) -> Described:
        return _described(self._ask("POST", f"/v1/sessions/{session}/restart"))

    def undo(self, session: str, cells: int = 1) -> Described:
        return _described(self._ask("POST", f"/v1/sessions/{session}/undo", {"cells": cells})["session"])

    def branch(self, session: str, name: str) -> Described:
        return _described(self._ask("POST", f"/v1/sessions/{session}/branch", {"id": name})["session"])

    def resize(self, session: str, size: str) -> Described:
        return _described(self._ask("PATCH", f"/v1/sessions/{session}", {"sandbox": {"sandbox_size": size}}))

    def add_context(self, session: str, name: str, runtime: str = "", folder: str = "") -> Described:
        given = {"id": name, "runtime": runtime, "working_folder": folder}
        body = {key: value for key, value in given.items() if value}
        return _described(self._ask("POST", f"/v1/sessions/{session}/contexts", body))

    def contexts(self, session: str) -> tuple[str, ...]:
        return tuple(one["id"] for one in self._ask("GET", f"/v1/sessions/{session}/contexts")["items"])

    def restart_context(self, session: str, name: str) -> Described:
        return _described(self._ask("POST", f"/v1/sessions/{session}/contexts/{name}/restart"))

    def remove_context(self, session: str, name: str) -> None:
        self._ask("DELETE", f"/v1/sessions/{session}/contexts/{name}")

    def history(self, session: str) -> tuple[Past, ...]:
        return tuple(past_of(one) for one in self._ask("GET", f"/v1/sessions/{session}/history")["items"])

    def put_file(self, session: str, path: str, data: bytes) -> Lying:
        link = self._ask("POST", f"{_mount(session)}/upload_url", {"path": path})
        # A link needs no key; whatever else a client sends along does not matter.
        answer = httpx2.put(link["url"], content=data, trust_env=False)
        if not answer.is_success:
            raise _refused(answer)
        told = self._ask("POST", f"{_mount(session)}/download_url", {"path": link["path"]})
        return Lying(path=told["path"], size=told["size"])

    def list_files(self, session: str, prefix: str = "") -> tuple[Lying, ...]:
        found = self._ask("GET", f"{_mount(session)}/items?prefix={quote(prefix)}")["items"]
        return tuple(Lying(path=one["path"], size=one["size"]) for one in found)

    def get_file(self, session: str, path: str) -> bytes:
        link = self._ask("POST", f"{_mount(session)}/download_url", {"path": path})
        answer = httpx2.get(link["url"], trust_env=False)
        if not answer.is_success:
            raise _refused(answer)
        return answer.content

    def delete_file(self, session: str, path: str) -> int:
        gone: int = self._ask("POST", f"{_mount(session)}/delete", {"path": path})["files"]
        return gone

    def delete(self, session: str) -> None:
        self._ask("DELETE", f"/v1/sessions/{session}")

    def _ask(self, method: str, path: str, body: object = None, headers: dict[str, str] | None = None) -> Any:
        content = None if body is None else json.dumps(body)
        kind = {} if body is None else {"content-type": "application/json"}
        answer = self._client.request(method, path, content=content, headers={**kind, **(headers or {})})
        if not answer.is_success:
            raise _refused(answer)
        return answer.json() if answer.content else None


def _mount(session: str) -> str:
    return f"/v1/sessions/{session}/mounts/files"


def _refused(answer: httpx2.Response) -> Refused:
    problem = answer.json()["error"]
    return Refused(problem["code"], problem["message"])


def _described(told: dict[str, Any]) -> Described:
    return Described(
        state=told["state"],
        epoch=told["epoch"],
        size=told["sandbox"]["sandbox_size"],
        runtime=told["runtime"],
        parent=told["parent"],
        running=any(one["running"] for one in told["queue"]),
        step=told["progress"]["current_step"],
        metric=told["progress"]["current_step_metric"],
    )


def past_of(cell: dict[str, Any]) -> Past:
    """From the JSON of a cell."""
    return Past(
        kind=cell["kind"],
        code=cell["code"],
        thought=cell["thought"],
        status=cell["status"],
        outcome=cell["result"]["outcome"] if cell["result"] is not None else None,
    )


def ran_of(cell: dict[str, Any]) -> Ran:
    """The same, of its end.

    Raises:
        Refused: it never began.
    """
    if cell["error"] is not None:
        raise Refused(cell["error"]["code"], cell["error"]["message"])
    result, receipt = cell["result"], cell["result"]["receipt"]
    return Ran(
        cell=cell["id"],
        outcome=result["outcome"],
        stdout=result["stdout"]["text"],
        stderr=result["stderr"]["text"],
        results=result["results"]["text"],
        stdout_file=result["stdout"]["file_path"],
        error=result["error"]["name"] if result["error"] is not None else None,
        exit_code=result["exit_code"],
        explanation=result["explanation"],
        displays=displays_of(result["displays"]),
        epoch=receipt["epoch"],
        state=receipt["state"],
        reason=receipt["reason"],
        added=tuple(receipt["added"]),
        rebound=tuple(receipt["rebound"]),
    )
