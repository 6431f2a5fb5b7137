"""`run_composio_tool` and `proxy_execute`: calls for the session's user, whose credentials stay outside."""

from __future__ import annotations

from typing import Any

from workbench_guest.helpers.arguments import json_problem, table_problem, text_problem
from workbench_guest.helpers.calling import Answer
from workbench_guest.helpers.dressing import dressed
from workbench_guest.helpers.retrying import ask_patiently, checked
from workbench_guest.helpers.shapes import say, shape

_REFUSALS = ("rate limit", "ratelimit", "too many requests", "quota exceeded", "resource exhausted")
_WITH_BODY, _WITHOUT_BODY = ("POST", "PUT", "PATCH"), ("GET", "DELETE")


def run_composio_tool(
    tool_slug: str,
    arguments: dict[str, Any] | None = None,
    retry_params: dict[str, int] | None = None,
    print_schema_for_tool: bool = True,
    *,
    account: str | None = None,
) -> tuple[dict[str, Any] | None, str]:
    """Run a tool of a connected app, and print the shape of its answer.

        result, error = run_composio_tool("GMAIL_FETCH_EMAILS", {"max_results": 10})
        if error:
            print(error)
        else:
            emails = result["data"]

    Safe to call from many threads at once. An answer that says that it was too often (a rate limit) is asked for
    again after a while; nothing else is, so that nothing is carried out twice.

    Args:
        tool_slug: the tool's name; small letters and spaces around it do not matter.
        arguments: what the tool takes, as a dict of JSON values; none is `{}`.
        retry_params: `{"max_retries": 3, "delay_ms": 2000}` unless told otherwise; the delay doubles each time.
        print_schema_for_tool: False prints nothing; good in loops.
        account: which connected account, where there are several.

    Returns:
        `(result, error)`. On success the whole answer, a dict with `data`, and `""`. If the tool itself failed, its
        answer and the error; if there is no answer, None and the error. Never raises for a call that failed.
    """
    given: Any = {} if arguments is None else arguments
    problem = text_problem("tool_slug", tool_slug) or table_problem("arguments", given)
    if not problem and account is not None:
        problem = text_problem("account", account)
    retry, wrong = checked(retry_params)
    if problem or wrong:
        return dressed(None, problem or wrong)
    request = {"tool_slug": tool_slug.strip().upper(), "arguments": given, "account": account}
    result, error, _ = ask_patiently("run_tool", request, retry, _is_refusal)
    error = error or _error_in(result)
    if result is not None and not isinstance(result, dict):
        return dressed(None, error or f"the tool's answer is a {type(result).__name__} and not an object")
    if print_schema_for_tool and not error:
        say(f"{request['tool_slug']} answered:\n{shape(result)}")
    return dressed(result, error)


def _error_in(result: Any) -> str:
    """What a tool says of its own failure; some say it with an object."""
    error = result.get("error") if isinstance(result, dict) else None
    return str(error) if error else ""


def _is_refusal(answer: Answer) -> bool:
    result, error, _ = answer
    # A call without an answer was not refused, whatever is said of it.
    said = (error if result is not None else "") + _error_in(result)
    return any(words in said.lower() for words in _REFUSALS)


def proxy_execute(
    method: str,
    endpoint: str,
    toolkit: str,
    query_params: dict[str, Any] | None = None,
    body: Any = None,
    headers: dict[str, str] | None = None,
) -> tuple[Any, str]:
    """Ask the API of a connected app directly, with the user's connection: for what no tool does.

        data, error = proxy_execute("GET", "/gmail/v1/users/me/profile", "gmail")
        data, error = proxy_execute("POST", "/repos/me/mine/issues", "github", body={"title": "Broken"})

    Args:
        method: GET, POST, PUT, PATCH or DELETE.
        endpoint: path below the app's own address, or a whole URL of that app.
        toolkit: the app, like "gmail".
        query_params: what is added to the address after `?`.
        body: what is sent, as JSON; needed for POST, PUT and PATCH (`{}` if there is nothing to say), not allowed for
            GET and DELETE.
        headers: more headers, as text; those with credentials are set outside of the sandbox.

    Returns:
        `(data, error)`. On success what the API answered, and `""`. If the API answered with a status of 400 or more,
        the whole response and the error; if there is no answer, None and the error. Never raises for a failed call.
    """
    problem = _proxy_problem(method, endpoint, toolkit, query_params, body, headers)
    if problem:
        return dressed(None, problem)
    request = {
        "method": method.strip().upper(),
        "endpoint": endpoint.strip(),
        "toolkit": toolkit.strip().lower(),
        "query_params": query_params or {},
        "body": body,
        "headers": headers or {},
    }
    result, error, _ = ask_patiently("proxy", request)
    return dressed(result, error)


def _proxy_problem(method: Any, endpoint: Any, toolkit: Any, query_params: Any, body: Any, headers: Any) -> str:
    for name, value in (("method", method), ("endpoint", endpoint), ("toolkit", toolkit)):
        if problem := text_problem(name, value):
            return problem
    verb = method.strip().upper()
    if verb not in (*_WITH_BODY, *_WITHOUT_BODY):
        return f"method has to be one of {', '.join((*_WITHOUT_BODY, *_WITH_BODY))}, not {method!r}"
    if verb in _WITH_BODY and body is None:
        return f"body is missing: {verb} sends one; give {{}} if there is nothing to say"
    if verb in _WITHOUT_BODY and body is not None:
        return f"body is not allowed with {verb}: use query_params, or another method"
    for name, table in (("query_params", query_params), ("headers", headers)):
        if table is not None and (problem := table_problem(name, table)):
            return problem
    for key, value in (headers or {}).items():
        if not isinstance(key, str) or not isinstance(value, str):
            return f"headers[{key!r}] has to be a str, not {type(value).__name__}"
    return json_problem("body", body)
