"""A server of models that thinks nothing: OpenAI's chat completions below /v1, and Anthropic's messages.

    with model_server() as server:
        WORKBENCH_LLM_PROVIDER=openai WORKBENCH_LLM_URL=f"{server.url}/v1", or anthropic and server.url

It repeats the question, or says what follows `say:` in it. Faults are named in the question or as the model:
`faulty_http` has them. A model whose name begins with `plain` knows no reasoning_effort, one that begins with `newer`
no max_tokens.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Any

from tests.services.faulty_http import Answer, Asked, FaultyHandler, said, serve
from tests.services.running import Running, running

_SAY = "say:"


class ModelHandler(FaultyHandler):
    def answer(self, asked: Asked) -> Answer:
        if asked.method != "POST" or asked.path not in _ROUTES:
            return said({"error": {"message": f"unknown url: {asked.path}"}}, 404)
        return _ROUTES[asked.path](asked)


def _completions(asked: Asked) -> Answer:
    body = asked.json()
    for model, parameter in (("plain", "reasoning_effort"), ("newer", "max_tokens")):
        if body["model"].startswith(model) and parameter in body:
            words = f"Unsupported parameter: '{parameter}' is not supported with this model."
            if parameter == "max_tokens":
                words += " Use 'max_completion_tokens' instead."
            return said({"error": {"message": words, "type": "invalid_request_error", "param": parameter}}, 400)
    text, counts = _thought(body)
    limit = body.get("max_tokens") or body.get("max_completion_tokens")
    return said(
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": body["model"],
            "choices": [
                {
                    "index": 0,
                    "message": {"role": "assistant", "content": text, "refusal": None},
                    "logprobs": None,
                    "finish_reason": "length" if limit == 1 else "stop",
                }
            ],
            "usage": {"prompt_tokens": counts[0], "completion_tokens": counts[1], "total_tokens": sum(counts)},
        }
    )


def _messages(asked: Asked) -> Answer:
    body = asked.json()
    if "anthropic-version" not in asked.headers or not isinstance(body.get("max_tokens"), int):
        problem = {"type": "invalid_request_error", "message": "anthropic-version: header is required"}
        return said({"type": "error", "error": problem}, 400)
    if body["model"].startswith("plain") and "output_config" in body:
        problem = {"type": "invalid_request_error", "message": "output_config: Extra inputs are not permitted"}
        return said({"type": "error", "error": problem}, 400)
    text, counts = _thought(body)
    return said(
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": body["model"],
            "content": [
                {"type": "thinking", "thinking": "hm", "signature": "x"},
                {"type": "text", "text": text[:3]},
                {"type": "text", "text": text[3:]},
            ],
            "stop_reason": "max_tokens" if body["max_tokens"] == 1 else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": counts[0], "output_tokens": counts[1], "cache_read_input_tokens": 0},
        }
    )


def _thought(body: dict[str, Any]) -> tuple[str, tuple[int, int]]:
    query = body["messages"][-1]["content"]
    text = query.partition(_SAY)[2] if _SAY in query else f"You asked: {query}"
    return text, (len(query.split()), len(text.split()))


_ROUTES = {"/v1/chat/completions": _completions, "/v1/messages": _messages}


@contextlib.contextmanager
def model_server() -> Iterator[Running]:
    """In a process of its own; gone afterwards."""
    with running("tests.services.model_server") as server:
        yield server


if __name__ == "__main__":
    serve(ModelHandler)
