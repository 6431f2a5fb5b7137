"""The requests of the sessions API, described as those of our own REST are in client/_requests.py."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeVar

from pydantic import BaseModel

from workbench.client import _envelopes
from workbench.client._file_requests import fetch_file as fetch_by_server
from workbench.client._requests import SLOW_S, Request, given, json_of, part_of_address
from workbench.client.composio import _options as options
from workbench.client.composio import values
from workbench.errors import InvalidRequest, from_wire
from workbench.model.mounts import INSIDE, check_mount, entry_path, file_path
from workbench.wire import composio as wire
from workbench.wire import composio_custom, composio_files, composio_tools, rest_files

_Model = TypeVar("_Model", bound=BaseModel)

BASE = "/api/v3.1"
# As many as there are on one page; the next is asked for with its cursor.
_TOOLS_PAGE = 500

Method = Literal["GET", "POST", "PUT", "DELETE", "PATCH"]


def blocks(told: Mapping[str, object], *, sandbox: object, workbench: object, nothing: object) -> dict[str, object]:
    """What a session is set up by, as the wire has it; what is `nothing` is left out, and None is sent as null."""
    name, place = options.one_of(sandbox, workbench, nothing)
    asked: dict[str, object] = {}
    for block, value in told.items():
        if value is not nothing:
            asked[block] = None if value is None else _block(block, value)
    if place is not nothing:
        asked["workbench"] = None if place is None else options.sandbox(name, options.mapping(name, place))
    return asked


def _block(name: str, value: Any) -> object:
    match name:
        case "toolkits" | "tags":
            return options.choice(name, value)
        case "tools":
            return options.tools(value)
        case "connected_accounts":
            return options.accounts(options.mapping(name, value))
        case "manage_connections":
            return options.manage_connections(value)
        case "multi_account":
            return options.multi_account(options.mapping(name, value))
        case "preload":
            return options.preload(value)
        case "proxy_execute" | "search":
            return options.switch(name, value)
        case "experimental":
            return options.experimental(options.mapping(name, value))
        case _:
            return dict(options.mapping(name, value))


def create_session(asked: Mapping[str, object]) -> Request[composio_custom.Session]:
    """A new session."""
    whole = {"manage_connections": {}, **asked}
    # As the field's own clients have it: both are said whenever there is a block.
    for block in ("manage_connections", "workbench"):
        if isinstance(said := whole.get(block), Mapping):
            whole[block] = {"enable": True, **said}
    return Request(
        method="POST",
        path=f"{BASE}/tool_router/session",
        body=json_of(composio_custom.CreateSession, whole),
        parse=composio_custom.Session.model_validate,
        silence_s=SLOW_S,
    )


def get_session(session: str) -> Request[composio_custom.Session]:
    """How it is."""
    return Request(method="GET", path=_session(session), parse=composio_custom.Session.model_validate, again=True)


def attach(session: str, definitions: values.JsonObject) -> Request[composio_custom.Session]:
    """The same, with tools of this program's."""
    return Request(
        method="POST",
        path=f"{_session(session)}/attach",
        body=_body({"experimental": definitions}),
        parse=composio_custom.Session.model_validate,
        again=True,
    )


def change_session(session: str, asked: Mapping[str, object], expected: int | None) -> Request[composio_custom.Session]:
    """What is given changes, the rest stays. Not sent twice: the second time it would be another version."""
    if not asked:
        raise InvalidRequest("nothing to change; give sandbox={'sandbox_size': 'large'}, toolkits=[…] or another block")
    return Request(
        method="PATCH",
        path=_session(session),
        body=json_of(wire.ChangeSession, {**asked, **given({"expected_config_version": expected})}),
        parse=composio_custom.Session.model_validate,
        silence_s=SLOW_S,
    )


def delete_session(session: str) -> Request[wire.DeletedSession]:
    """It and its files."""
    return Request(method="DELETE", path=_session(session), parse=wire.DeletedSession.model_validate, silence_s=SLOW_S)


def list_config_history(session: str, cursor: str | None, limit: int | None) -> Request[wire.ConfigHistory]:
    """How it was set up before."""
    return Request(
        method="GET",
        path=f"{_session(session)}/config_history",
        query=given({"cursor": cursor, "limit": None if limit is None else str(limit)}),
        parse=wire.ConfigHistory.model_validate,
        again=True,
    )


def list_tools(session: str, cursor: str | None) -> Request[composio_tools.ToolPage]:
    """A page of what it has."""
    return Request(
        method="GET",
        path=f"{_session(session)}/tools",
        query=given({"limit": str(_TOOLS_PAGE), "cursor": cursor}),
        parse=composio_tools.ToolPage.model_validate,
        again=True,
    )


def search(
    session: str,
    query: str,
    *,
    model: str | None,
    toolkits: Iterable[str] | None,
    definitions: values.JsonObject,
) -> Request[values.SearchResponse]:
    """Tools for a task."""
    asked = {
        "queries": [{"use_case": query}],
        "model": model,
        "toolkits": None if toolkits is None else options.slugs("toolkits", toolkits),
        "experimental": definitions or None,
    }
    return Request(
        method="POST",
        path=f"{_session(session)}/search",
        body=_body(given(asked)),
        parse=lambda answer: _answered(values.SearchResponse, answer),
        again=True,
        silence_s=SLOW_S,
    )


def execute(
    session: str,
    slug: str,
    arguments: Mapping[str, object] | None,
    *,
    account: str | None,
    definitions: values.JsonObject,
    meta: bool = False,
    answers: values.Answers | None = None,
) -> Request[values.ExecuteResponse]:
    """Run a tool. Never sent a second time: once it has ended, nothing tells the server that it is the same call.

    The server keeps the connection alive with white space for as long as the tool runs.
    """
    if not slug.strip():
        raise InvalidRequest("the slug of the tool is empty; session.tools() has those that there are")
    asked = {
        "slug" if meta else "tool_slug": slug,
        "arguments": None if arguments is None else options.json_object("arguments", arguments),
        "account": account,
        "experimental": definitions or None,
    }
    if answers is not None:
        asked["input_responses"] = options.json_object("input_responses", answers.responses)
        asked["request_state"] = answers.state
    return Request(
        method="POST",
        path=f"{_session(session)}/{'execute_meta' if meta else 'execute'}",
        body=_body(given(asked)),
        # The server takes two calls of the same words at the same time for one that was sent twice: ours never is.
        headers={"X-Call-Id": secrets.token_hex(16)},
        parse=executed,
        silence_s=SLOW_S,
    )


def executed(answer: Any) -> values.ExecuteResponse:
    """What the tool answered.

    Raises:
        WorkbenchError: it never began, and that came to light after the answer had.
    """
    told = _Executed.model_validate(_unrefused(answer))
    kind = told.result_type or ("failed" if told.error else "completed")
    match kind:
        case "blocked":
            error: str | None = told.message or "the call was blocked by a rule of the session"
        case "input_required":
            error = (
                "a person has to be asked first, and nothing was done: ask them what `input_requests` say, and call it "
                "again with the same arguments, their answers as `input_responses`, and `request_state`"
            )
        case _:
            error = told.error
    return values.ExecuteResponse(
        data=told.data or {},
        error=error,
        log_id=told.log_id or "",
        result_type=kind,
        input_requests=told.input_requests or {},
        request_state=told.request_state or "",
    )


class _Executed(BaseModel):
    data: values.JsonObject | None = None
    error: str | None = None
    log_id: str | None = None
    result_type: values.ResultType | None = None
    message: str | None = None
    input_requests: dict[str, values.JsonObject] | None = None
    request_state: str | None = None


def list_toolkits(
    session: str,
    *,
    toolkits: Iterable[str] | None,
    cursor: str | None,
    limit: int | None,
    is_connected: bool | None,
    search: str | None,
) -> Request[values.ToolkitPage]:
    """A page of them."""
    query = {
        "limit": None if limit is None else str(limit),
        "cursor": cursor,
        "toolkits": None if toolkits is None else ",".join(options.slugs("toolkits", toolkits)),
        "is_connected": None if is_connected is None else str(is_connected).lower(),
        "search": search,
    }
    return Request(
        method="GET",
        path=f"{_session(session)}/toolkits",
        query=given(query),
        parse=values.ToolkitPage.model_validate,
        again=True,
    )


def link(
    session: str, toolkit: str, *, callback_url: str | None, alias: str | None
) -> Request[composio_tools.LinkMade]:
    """Where the user goes to connect an account."""
    return Request(
        method="POST",
        path=f"{_session(session)}/link",
        body=_body(given({"toolkit": toolkit, "callback_url": callback_url, "alias": alias})),
        parse=composio_tools.LinkMade.model_validate,
    )


def get_account(account: str) -> Request[values.ConnectedAccount]:
    """How far it is."""
    return Request(
        method="GET",
        path=f"{BASE}/connected_accounts/{part_of_address(account)}",
        parse=values.ConnectedAccount.model_validate,
        again=True,
    )


def proxy_execute(
    session: str,
    *,
    toolkit: str,
    endpoint: str,
    method: Method,
    body: object,
    parameters: Iterable[Mapping[str, object]] | None,
) -> Request[composio_tools.Proxied]:
    """A request to the API behind a toolkit, with the user's account. Never sent a second time."""
    asked = {
        "toolkit_slug": toolkit,
        "endpoint": endpoint,
        "method": method,
        "body": body,
        "parameters": None if parameters is None else [_parameter(one) for one in parameters],
    }
    return Request(
        method="POST",
        path=f"{_session(session)}/proxy_execute",
        body=_body(given(asked)),
        parse=lambda answer: _answered(composio_tools.Proxied, answer),
        silence_s=SLOW_S,
    )


def _parameter(told: Mapping[str, object]) -> dict[str, object]:
    missing = {"name", "value"} - told.keys()
    where = told.get("in", told.get("type", "header"))
    if missing or where not in ("query", "header"):
        raise InvalidRequest(
            f"a parameter is {{'name': …, 'value': …, 'in': 'query' or 'header'}}, not {dict(told)!r}",
            {"option": "parameters"},
        )
    return {"name": told["name"], "type": where, "value": _as_text(told["value"])}


def _as_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def list_files(
    session: str, mount: str, path: str | None, cursor: str | None, limit: int | None
) -> Request[composio_files.FileItems]:
    """A page of them."""
    prefix = path or ""
    if prefix == INSIDE or prefix.startswith(f"{INSIDE}/"):
        prefix = prefix.removeprefix(INSIDE)
    prefix = prefix.lstrip("/")
    query = {
        "mount_relative_prefix": prefix or None,
        "cursor": cursor,
        "limit": None if limit is None else str(limit),
    }
    return Request(
        method="GET",
        path=f"{_mount(session, mount)}/items",
        query=given(query),
        parse=composio_files.FileItems.model_validate,
        again=True,
    )


@dataclass(frozen=True, slots=True)
class UploadLink:
    """Where a file can be sent, as transfers know links."""

    told: composio_files.UploadUrl

    @classmethod
    def of(cls, answer: object) -> UploadLink:
        """What the server answered."""
        return cls(composio_files.UploadUrl.model_validate(answer))

    @property
    def url(self) -> str:
        """Without a key."""
        return self.told.upload_url

    @property
    def path(self) -> str:
        """From the top of the mount."""
        return self.told.mount_relative_path


@dataclass(frozen=True, slots=True)
class DownloadLink:
    """Where a file can be fetched, as transfers know links."""

    told: composio_files.DownloadUrl

    @classmethod
    def of(cls, answer: object) -> DownloadLink:
        """What the server answered."""
        return cls(composio_files.DownloadUrl.model_validate(answer))

    @property
    def url(self) -> str:
        """Without a key."""
        return self.told.download_url

    @property
    def path(self) -> str:
        """From the top of the mount."""
        return self.told.mount_relative_path


def upload_link(session: str, mount: str, path: str, mimetype: str) -> Request[UploadLink]:
    """Where a file is to be sent."""
    file_path(path)
    return Request(
        method="POST",
        path=f"{_mount(session, mount)}/upload_url",
        body=_body({"mount_relative_path": path, "mimetype": mimetype}),
        parse=UploadLink.of,
        again=True,
    )


def download_link(session: str, mount: str, path: str) -> Request[DownloadLink]:
    """Where a file that is there is fetched."""
    file_path(path)
    return Request(
        method="POST",
        path=f"{_mount(session, mount)}/download_url",
        body=_body({"mount_relative_path": path}),
        parse=DownloadLink.of,
        again=True,
    )


def fetch_file(session: str, mount: str, url: str, path: str) -> Request[rest_files.File]:
    """From another server, by ours: this API has no words for it, so it is our own REST that is asked."""
    return fetch_by_server(session, mount, url, path)


def delete_file(session: str, mount: str, path: str) -> Request[composio_files.DeletedFile]:
    """A file, or a folder with all in it."""
    entry_path(path)
    return Request(
        method="POST",
        path=f"{_mount(session, mount)}/delete",
        body=_body({"mount_relative_path": path}),
        parse=composio_files.DeletedFile.model_validate,
        silence_s=SLOW_S,
    )


def _session(session: str) -> str:
    return f"{BASE}/tool_router/session/{part_of_address(session)}"


def _mount(session: str, mount: str) -> str:
    if "/" in mount:
        check_mount(mount)
    return f"{_session(session)}/mounts/{part_of_address(mount)}"


def _body(asked: Mapping[str, object]) -> bytes:
    try:
        return json.dumps(asked, allow_nan=False).encode()
    except (TypeError, ValueError) as problem:
        raise InvalidRequest(f"what was given cannot be sent as JSON: {problem}") from None


def _answered(model: type[_Model], answer: object) -> _Model:
    return model.model_validate(_unrefused(answer))


def _unrefused(answer: object) -> object:
    """The same, unless it is a refusal after all: headers are sent at once, before anything is known."""
    if (problem := _envelopes.problem_of(answer)) is not None:
        raise from_wire(problem.code, problem.message, {**problem.context, "request_id": problem.request_id})
    return answer
