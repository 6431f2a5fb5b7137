"""What a sandbox asks over its socket, asked over HTTP: which request that is, and what its answer means."""

from __future__ import annotations

import mimetypes
import os
import re
from collections.abc import Callable
from typing import Any

from workbench_guest.helpers.retrying import RATE_LIMITED
from workbench_guest.local.asking import BAD_ANSWER, MissingCredential, Reply, Unanswered, post, session_path

MODEL_TOOL, SEARCH_TOOL = "COMPOSIO_SEARCH_GROQ_CHAT", "COMPOSIO_SEARCH_EXA_ANSWER"
MODEL, TEMPERATURE = "openai/gpt-oss-120b", 0.5
_INSTRUCTION = "Do what the user asks. Answer with what was asked for, and nothing around it."
# Which files these are for tools that take one by its key.
MOUNT_ID_VARIABLE = "WORKBENCH_MOUNT_ID"
_TOO_OFTEN = 429
_FENCE = re.compile(r"\s*```[A-Za-z0-9_-]*\r?\n(.*?)\r?\n?```\s*", re.DOTALL)
_WORDS_OF_A_LIMIT = ("rate limit", "ratelimit", "too many requests", "quota exceeded", "resource exhausted")

Answer = tuple[Any, str, str]


def ask(operation: str, arguments: dict[str, Any]) -> Answer:
    """Ask once for `operation`: `(result, error, code)`, the last two empty on success.

    Raises:
        RuntimeError: a tool is to be run, and there is nothing to call the workbench with.
    """
    try:
        return _OPERATIONS[operation](arguments)
    except Unanswered as failure:
        return None, str(failure), failure.code
    except MissingCredential as problem:
        if operation == "run_tool":
            raise
        return None, str(problem), "unauthenticated"


def mount_path(below: str) -> str:
    """Where a request about the mount goes."""
    return f"{session_path()}/mounts/files/{below}"


def refusal(reply: Reply, what: str) -> Answer:
    """An answer that is none: with its status, and what the other side says of it."""
    said = f": {reply.said}" if reply.said else ""
    leads = "; set BACKEND_URL to where it leads" if 300 <= reply.status < 400 else ""
    code = RATE_LIMITED if reply.status == _TOO_OFTEN else "refused"
    return None, f"{what} failed with HTTP {reply.status}{said}{leads}", code


def link_to(path: str) -> tuple[dict[str, Any], str]:
    """A link to a file of the mount, and until when it holds; or what went wrong."""
    reply = post(mount_path("download_url"), {"mount_relative_path": path})
    if not 200 <= reply.status < 300:
        return {}, refusal(reply, "the link")[1]
    if not isinstance(reply.value, dict) or not isinstance(reply.value.get("download_url"), str):
        return {}, "the answer has no link"
    return reply.value, ""


def _run_tool(arguments: dict[str, Any]) -> Answer:
    request = {"tool_slug": arguments["tool_slug"], "arguments": arguments["arguments"]}
    if arguments.get("account") is not None:
        request["account"] = arguments["account"]
    reply = post(f"{session_path()}/execute", request)
    body = reply.value if isinstance(reply.value, dict) else {"raw": reply.text}
    if not 200 <= reply.status < 300:
        _, error, code = refusal(reply, "Composio tool execution")
        return body, error, code
    if reply.problem or not isinstance(reply.value, dict):
        return body, f"Failed to parse the answer of the tool: {reply.problem or 'it is no object'}", BAD_ANSWER
    error = _error_of(body)
    return body, error, RATE_LIMITED if any(words in error.lower() for words in _WORDS_OF_A_LIMIT) else ""


def _error_of(body: dict[str, Any]) -> str:
    if body.get("error"):
        return str(body["error"])
    if body.get("result_type") == "blocked":
        return str(body.get("message") or "the call was blocked")
    if body.get("result_type") == "input_required":
        return "the tool asks its user for something, which cannot be answered from here"
    return ""


def _invoke_llm(arguments: dict[str, Any]) -> Answer:
    messages = [
        {"role": "system", "content": _INSTRUCTION},
        {"role": "user", "content": arguments["query"]},
    ]
    asked: dict[str, Any] = {"model": MODEL, "messages": messages, "temperature": TEMPERATURE}
    if arguments.get("reasoning_effort"):
        asked["reasoning_effort"] = arguments["reasoning_effort"]
    body, error, code = _run_tool({"tool_slug": MODEL_TOOL, "arguments": asked})
    if error:
        return None, error, code
    try:
        text = body["data"]["choices"][0]["message"]["content"]
    except (KeyError, IndexError, TypeError):
        return None, "the answer of the model has no text", BAD_ANSWER
    return (_without_fence(text) if isinstance(text, str) else text), "", ""


def _without_fence(text: str) -> str:
    """Of an answer that is one block of code the code: models put one around what they were asked for."""
    found = _FENCE.fullmatch(text)
    return found[1] if found and "```" not in found[1] else text


def _web_search(arguments: dict[str, Any]) -> Answer:
    body, error, code = _run_tool({"tool_slug": SEARCH_TOOL, "arguments": {"content": arguments["query"]}})
    if error:
        return None, error, code
    data = body.get("data")
    return (data.get("answer") if isinstance(data, dict) else None), "", ""


def _proxy(arguments: dict[str, Any]) -> Answer:
    request = {
        "toolkit_slug": arguments["toolkit"],
        "endpoint": arguments["endpoint"],
        "method": arguments["method"],
    }
    parameters = [*_parameters(arguments["query_params"], "query"), *_parameters(arguments["headers"], "header")]
    if parameters:
        request["parameters"] = parameters
    if arguments["body"] is not None:
        request["body"] = arguments["body"]
    reply = post(f"{session_path()}/proxy_execute", request)
    if not 200 <= reply.status < 300:
        return refusal(reply, "the call of the service")
    if not isinstance(reply.value, dict):
        return None, f"Failed to parse the answer of the service: {reply.problem or 'it is no object'}", BAD_ANSWER
    response = reply.value
    if error := _error_of(response):
        return response, error, ""
    status = _number(response.get("status"))
    if status >= 400:
        return response, f"API returned status {status}: {str(response.get('data'))[:500]}", ""
    return response.get("data", response.get("binary_data")), "", ""


def _parameters(table: dict[str, Any], kind: str) -> list[dict[str, str]]:
    """A list is one parameter several times, as in addresses."""
    pairs = [(name, one) for name, value in table.items() for one in (value if isinstance(value, list) else [value])]
    return [{"name": str(name), "value": _worded(one), "type": kind} for name, one in pairs if one is not None]


def _worded(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _number(status: Any) -> int:
    """Some say it as text."""
    try:
        return int(status)
    except (TypeError, ValueError):
        return 0


def _file_link(arguments: dict[str, Any]) -> Answer:
    found, error = link_to(arguments["path"])
    if error:
        return None, error, "refused"
    told = {
        "url": found["download_url"],
        "expires_at": found.get("expires_at"),
        "type": mimetypes.guess_type(arguments["path"])[0] or "application/octet-stream",
        "key": file_key(arguments["path"]),
    }
    return told, "", ""


def _file_key(arguments: dict[str, Any]) -> Answer:
    # A link is asked for to see that there is such a file.
    _, error = link_to(arguments["path"])
    key = file_key(arguments["path"])
    error = error or ("" if key else f"{MOUNT_ID_VARIABLE} is not set: it is in the env that came with this helper")
    return (None, error, "refused") if error else (key, "", "")


def file_key(path: str) -> str:
    """By which tools know a file of the mount; empty if nobody said which mount it is."""
    mount = os.environ.get(MOUNT_ID_VARIABLE, "").strip()
    return f"{mount}/{path}" if mount else ""


_OPERATIONS: dict[str, Callable[[dict[str, Any]], Answer]] = {
    "run_tool": _run_tool,
    "invoke_llm": _invoke_llm,
    "web_search": _web_search,
    "proxy": _proxy,
    "file_link": _file_link,
    "file_key": _file_key,
}
