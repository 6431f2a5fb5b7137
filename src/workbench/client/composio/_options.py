"""What `create` and `update` take, as the wire has it: short forms become whole ones, and near misses are named."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypedDict

from workbench.client._requests import check_names
from workbench.client.composio.values import JsonObject
from workbench.errors import InvalidRequest
from workbench.wire import composio as wire
from workbench.wire.rest import Size


class SandboxOptions(TypedDict, total=False):
    """What a session's sandbox is like; what is left out is as the server has it."""

    enable: bool
    enable_proxy_execution: bool
    enable_tool_execution: bool
    auto_offload_threshold: int
    sandbox_size: Size


class ManageConnectionsOptions(TypedDict, total=False):
    """Whether the agent may ask the user to connect an account, and what happens then."""

    enable: bool
    callback_url: str | None
    wait_for_connections: bool
    enable_wait_for_connections: bool
    enable_connection_removal: bool


class MultiAccountOptions(TypedDict, total=False):
    """Whether a toolkit may have several accounts."""

    enable: bool
    max_accounts_per_toolkit: int
    require_explicit_selection: bool


Listed = Iterable[str] | Mapping[str, Any]
"""slugs that are to be there, or `{"enable": […]}`, `{"disable": […]}`, `{"require_approval": […]}`"""


def one_of(sandbox: object, workbench: object, nothing: object) -> tuple[str, object]:
    """One thing with two names: which one was used, and what was said.

    Raises:
        InvalidRequest: both were given.
    """
    if sandbox is not nothing and workbench is not nothing:
        raise InvalidRequest("sandbox= and workbench= are two names for the same; give one of them")
    return ("sandbox", sandbox) if sandbox is not nothing else ("workbench", workbench)


def choice(where: str, told: Listed) -> dict[str, object]:
    """Which of them; a bare list is those that are to be there."""
    if isinstance(told, Mapping):
        check_names(where, told, wire.Choosing)
        return dict(told)
    return {"enable": slugs(where, told)}


def slugs(where: str, told: Iterable[str]) -> list[str]:
    """As a list.

    Raises:
        InvalidRequest: it is none; one text would be taken for its letters.
    """
    if isinstance(told, str):
        raise InvalidRequest(f"{where} takes a list, not one text: [{told!r}]")
    if not isinstance(told, Iterable):
        raise InvalidRequest(f"{where} takes a list, not {type(told).__name__}")
    return list(told)


def mapping(where: str, told: object) -> Mapping[str, Any]:
    """Itself.

    Raises:
        InvalidRequest: it is no dict.
    """
    if not isinstance(told, Mapping):
        raise InvalidRequest(f"{where} must be a dict, not {type(told).__name__}", {"option": where})
    return told


def tools(told: Mapping[str, Listed]) -> dict[str, object]:
    """Which of each toolkit."""
    if not isinstance(told, Mapping):
        raise InvalidRequest(
            "tools takes a dict from toolkits to their tools, such as {'github': ['GITHUB_GET_A_REPO']}"
        )
    return {toolkit: _of_toolkit(f"tools[{toolkit!r}]", one) for toolkit, one in told.items()}


def _of_toolkit(where: str, told: Listed) -> dict[str, object]:
    if not isinstance(told, Mapping):
        return choice(where, told)
    check_names(where, told, wire.ChoosingTools)
    whole = dict(told)
    if whole.get("tags") is not None:
        whole["tags"] = choice(f"{where}['tags']", whole["tags"])
    return whole


def accounts(told: Mapping[str, str | Iterable[str]]) -> dict[str, object]:
    """Of each toolkit; one alone is a list of one."""
    return {toolkit: [ids] if isinstance(ids, str) else list(ids) for toolkit, ids in told.items()}


def manage_connections(told: bool | Mapping[str, Any]) -> dict[str, object]:
    """Under the names of the wire."""
    if isinstance(told, bool):
        return {"enable": told}
    renamed = dict(mapping("manage_connections", told))
    if "wait_for_connections" in renamed:
        renamed["enable_wait_for_connections"] = renamed.pop("wait_for_connections")
    check_names("manage_connections", renamed, wire.ManagingConnections)
    return renamed


def sandbox(where: str, told: Mapping[str, Any]) -> dict[str, object]:
    """What was given of it."""
    check_names(where, told, wire.Sandbox)
    return dict(told)


def multi_account(told: Mapping[str, Any]) -> dict[str, object]:
    """Who turns it on says which account is meant, unless that is said otherwise."""
    check_names("multi_account", told, wire.ManyAccounts)
    return {"require_explicit_selection": True, **told} if told.get("enable") else dict(told)


def switch(where: str, told: bool | Mapping[str, Any]) -> dict[str, object]:
    """On or off, also as a dict."""
    return {"enable": told} if isinstance(told, bool) else dict(mapping(where, told))


def preload(told: Iterable[str] | Mapping[str, Any]) -> dict[str, object]:
    """Tools by name, or all."""
    if isinstance(told, Mapping):
        return dict(told)
    return {"tools": told if told == "all" else slugs("preload", told)}


def experimental(told: Mapping[str, Any]) -> dict[str, object]:
    """Under the names of the wire."""
    renamed = dict(told)
    if "assistive_prompt" in renamed:
        renamed["assistive_prompt_config"] = renamed.pop("assistive_prompt")
    return renamed


def json_object(where: str, value: object) -> JsonObject:
    """What can be sent as an object.

    Raises:
        InvalidRequest: it is none, or holds what JSON cannot.
    """
    if not isinstance(value, Mapping):
        raise InvalidRequest(f"{where} must be a dict, not {type(value).__name__}")
    try:
        json.dumps(dict(value), allow_nan=False)
    except (TypeError, ValueError) as problem:
        raise InvalidRequest(f"{where} cannot be sent as JSON: {problem}") from None
    return dict(value)
