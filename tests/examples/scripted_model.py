"""A stand-in for the model at 127.0.0.1, for programs that only call tools when a model asks: it asks for one tool, and
then says what came back. Nothing leaves the machine.
"""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class ScriptedModel(ThreadingHTTPServer):
    """Speaks as much of Anthropic's messages as a client needs."""

    daemon_threads = True

    def __init__(self, tool: str, arguments: dict[str, Any]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.tool = tool
        self.arguments = arguments

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"

    def answer(self, asked: dict[str, Any]) -> dict[str, Any]:
        """The block that it says."""
        offered = {one["name"] for one in asked.get("tools", [])}
        result = _last_result(asked["messages"])
        if result is None and self.tool in offered:
            return {"type": "tool_use", "id": "toolu_1", "name": self.tool, "input": self.arguments}
        return {"type": "text", "text": "nothing to say" if result is None else f"RESULT {result}"}


def _last_result(messages: list[dict[str, Any]]) -> str | None:
    for message in reversed(messages):
        if isinstance(message["content"], list):
            for block in message["content"]:
                if block.get("type") == "tool_result":
                    return json.dumps(block["content"])
    return None


def _message(block: dict[str, Any]) -> dict[str, Any]:
    return {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": [block],
        "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn", "stop_sequence": None,
        "usage": {"input_tokens": 1, "output_tokens": 1},
    }  # fmt: skip


def _events(message: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """The same, as it comes in a stream."""
    block = message["content"][0]
    empty: dict[str, Any]
    if block["type"] == "tool_use":
        empty = {"input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
    else:
        empty = {"text": ""}
        delta = {"type": "text_delta", "text": block["text"]}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    return [
        ("message_start", {"message": message | {"content": [], "stop_reason": None}}),
        ("content_block_start", {"index": 0, "content_block": block | empty}),
        ("content_block_delta", {"index": 0, "delta": delta}),
        ("content_block_stop", {"index": 0}),
        ("message_delta", {"delta": end, "usage": message["usage"]}),
        ("message_stop", {}),
    ]


class _Handler(BaseHTTPRequestHandler):
    server: ScriptedModel

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
        if not self.path.startswith("/v1/messages") or "count_tokens" in self.path:
            self._send("application/json", b'{"input_tokens": 1}')
            return
        message = _message(self.server.answer(asked))
        if asked.get("stream"):
            lines = [
                f"event: {name}\ndata: {json.dumps({'type': name, **data})}\n\n" for name, data in _events(message)
            ]
            self._send("text/event-stream", "".join(lines).encode())
        else:
            self._send("application/json", json.dumps(message).encode())

    def do_GET(self) -> None:
        self._send("application/json", b"{}")

    def do_HEAD(self) -> None:
        self._send("application/json", b"")

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  (the name is the library's)
        pass


@contextlib.contextmanager
def scripted_model(tool: str, arguments: dict[str, Any]) -> Iterator[ScriptedModel]:
    """One that runs."""
    with ScriptedModel(tool, arguments) as model:
        thread = threading.Thread(target=model.serve_forever, daemon=True)
        thread.start()
        try:
            yield model
        finally:
            model.shutdown()
            thread.join(10)
