"""Tools of one session, called by plain HTTP."""

from __future__ import annotations

from typing import Any

import httpx2

BASH, WORKBENCH = "COMPOSIO_REMOTE_BASH_TOOL", "COMPOSIO_REMOTE_WORKBENCH"
CHAT, ANSWER = "COMPOSIO_SEARCH_GROQ_CHAT", "COMPOSIO_SEARCH_EXA_ANSWER"


class Calling:
    """One session, and who calls."""

    def __init__(self, client: httpx2.Client, session: str, prefix: str = "/api/v3.1") -> None:
        self.client = client
        self.session = session
        self.prefix = prefix

    @property
    def address(self) -> str:
        """Of the session."""
        return f"{self.prefix}/tool_router/session/{self.session}"

    def post(self, what: str, body: dict[str, Any]) -> httpx2.Response:
        """Whatever comes of it."""
        return self.client.post(f"{self.address}/{what}", json=body)

    def get(self, what: str, **query: Any) -> dict[str, Any]:
        """What is told."""
        answer = self.client.get(f"{self.address}/{what}", params=query)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        return told

    def run(self, slug: str, arguments: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """An answer in the shape that all SDKs read."""
        body = {"tool_slug": slug, **({} if arguments is None else {"arguments": arguments}), **more}
        answer = self.post("execute", body)
        assert answer.status_code == 200, answer.text
        told: dict[str, Any] = answer.json()
        assert set(told) == {"data", "error", "log_id", "result_type"}
        assert isinstance(told["data"], dict)
        assert isinstance(told["log_id"], str)
        assert told["result_type"] == ("completed" if told["error"] is None else "failed")
        return told

    def data(self, slug: str, arguments: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
        """Of one that succeeds."""
        told = self.run(slug, arguments, **more)
        assert told["error"] is None, told
        data: dict[str, Any] = told["data"]
        return data

    def python(self, code: str) -> str:
        """The last value, in words."""
        results: str = self.data(WORKBENCH, {"code_to_execute": code})["results"]
        return results


def configured(client: httpx2.Client, made: list[str], **config: Any) -> Calling:
    """In a session that is set up so."""
    answer = client.post("/api/v3.1/tool_router/session", json={"user_id": "tester", **config})
    assert answer.status_code == 201, answer.text
    made.append(answer.json()["session_id"])
    return Calling(client, made[-1])
