"""What the generated requests are about: a session, cells and folders that exist, to reach more than a 404."""

from __future__ import annotations

import itertools
import os
from typing import Any

import schemathesis
from schemathesis.core.parameters import ParameterLocation

_OWN_KEY, _SESSION, _SWITCHED_OFF, _USER, _CELL, _COMMAND, _CONFIG, _ACCOUNT, _DYING = os.environ["FUZZED_WITH"].split(
    ","
)
# What the run needs to its end, and may not be ended by a request that found it in an answer.
_KEPT = {
    "key_id": _OWN_KEY,
    "session_id": _SESSION,
    "user_id": _USER,
    "account_id": _ACCOUNT,
    "connection_id": _ACCOUNT,
    "auth_config_id": _CONFIG,
}
_NOBODY = {
    "key_id": "0123456789ab",
    "session_id": "nobody",
    "user_id": "nobody",
    "account_id": "ca_nobody",
    "connection_id": "ca_nobody",
    "auth_config_id": "ac_nobody",
}
_DOOMED_ACCOUNTS = {
    "remove_connection": itertools.cycle(_DYING.split()[::2]),
    "api_delete_connected_account": itertools.cycle(_DYING.split()[1::2]),
}
# Files that are there for it: one to be read, and many to be deleted.
_FILE, _DOOMED = "kept.txt", itertools.count(1)
# A context that is there for it, and those to be removed.
_CONTEXT, _DOOMED_CONTEXTS = "fuzzed-context", itertools.cycle(range(1, 7))
_OF_CONTEXTS = ("fuzzed-context", "fuzzed-doomed-")
# Toolkits to be added, which nobody reaches, and to be removed.
_ADDED, _REMOVED = itertools.count(1), itertools.count(1)
_ENDING = {
    "revoke_key",
    "rotate_key",
    "delete_session",
    "delete_user",
    "api_delete_session",
    "remove_toolkit",
    "remove_auth_config",
    "api_delete_auth_config",
    *_DOOMED_ACCOUNTS,
}

# What no request can have here, as nobody has an account: for a session that there is not.
_NOT_HERE = {"api_proxy_execute"}
_TOOL = "COMPOSIO_REMOTE_WORKBENCH"
# Its accounts are connected in every way that there is.
_KIT = "github"
_ACCOUNTS = {
    "api_create_auth_config",
    "api_create_connected_account",
    "api_change_connected_account",
    "api_link_account",
}


@schemathesis.hook
def before_call(context: Any, case: schemathesis.Case[Any], kwargs: dict[str, Any]) -> None:
    """Only names that the generator made up are replaced: what follows from earlier answers stays."""
    names = case.path_parameters or {}
    operation = case.operation.definition.raw["operationId"]
    if operation in _ENDING:
        for name in names:
            if names[name] == _KEPT.get(name) or str(names[name]).startswith(_OF_CONTEXTS):
                names[name] = _NOBODY[name]
        if operation in _DOOMED_ACCOUNTS and case.meta and not case.meta.is_negative_at(ParameterLocation.PATH):
            for name in names:
                names[name] = next(_DOOMED_ACCOUNTS[operation])
        if operation == "remove_toolkit":
            names["slug"] = f"kit{next(_REMOVED)}"
        return
    if case.meta is None:
        return
    if case.query and not case.meta.is_negative_at(ParameterLocation.QUERY):
        _make_question_true(case.query)
    if isinstance(case.body, dict) and not case.meta.is_negative_at(ParameterLocation.BODY):
        _make_true(case.body, case.path, operation)
    if operation in _NOT_HERE:
        names["session_id"] = _NOBODY["session_id"]
        return
    if case.meta.phase.name == "stateful" or case.meta.is_negative_at(ParameterLocation.PATH):
        return
    _name_what_is_there(names, case.path, operation)


def _name_what_is_there(names: dict[str, Any], path: str, operation: str) -> None:
    if "context_id" in names:
        doomed = f"fuzzed-doomed-{next(_DOOMED_CONTEXTS)}" if operation == "remove_context" else _CONTEXT
        names["context_id"] = doomed
    if "session_id" in names:
        # A local sandbox is for a session that has none of ours.
        names["session_id"] = _SWITCHED_OFF if path.endswith("/local-sandbox") else _SESSION
    for name in ("account_id", "connection_id", "auth_config_id"):
        if name in names:
            names[name] = _KEPT[name]
    if path.startswith("/v1/toolkits/"):
        names["slug"] = "fuzzed"
    if "tool_slug" in names:
        names["tool_slug"] = _TOOL
    if "mount_id" in names:
        names["mount_id"] = "files"
    if "cell_id" in names:
        names["cell_id"] = _COMMAND if "/commands/" in path else _CELL


def _make_question_true(query: dict[str, Any]) -> None:
    if "-02-29T" in str(query.get("before", "")):
        # Not every year has one.
        query["before"] = "2028-02-29T00:00:00Z"
    for name in ("prefix", "mount_relative_prefix"):
        if name in query:
            # Not every text is the beginning of a path.
            query[name] = _FILE[:3]


def _make_true(body: dict[str, Any], path: str, operation: str) -> None:
    """Things that a schema has no words for, and that are told in words."""
    if operation == "add_toolkit":
        # Of one origin, with its own options; what is tried is this machine's, and refused.
        body.clear()
        body |= {"slug": f"kit{next(_ADDED)}", "url": "http://127.0.0.1:9/mcp", "test": False}
    if operation == "create_context" or body.get("eager"):
        # Its kernel is started, and not every machine has every language.
        body.pop("runtime", None)
    _name_a_toolkit(body)
    if operation in _ACCOUNTS:
        _make_true_of_accounts(body, operation)
    if "/mounts/" in path:
        _make_true_of_files(body, operation)
    elif path.startswith("/api/"):
        _make_true_of_tools(body, operation)
        _make_true_of_sessions(body, operation)
    if "cwd" in body:
        # It must exist.
        body["cwd"] = "/home/user"
    if "label" in body:
        # It must be printable, by Unicode's account of it.
        body["label"] = "".join(letter for letter in body["label"] if letter.isprintable())


def _name_a_toolkit(body: dict[str, Any]) -> None:
    """Names of toolkits are found in answers: some that nobody reaches, and some that have no accounts."""
    toolkit = body.get("toolkit")
    if isinstance(toolkit, dict) and "slug" in toolkit:
        toolkit["slug"] = _KIT
    elif isinstance(toolkit, str):
        body["toolkit"] = _KIT


def _make_true_of_accounts(body: dict[str, Any], operation: str) -> None:
    """Which kinds a toolkit has, and what proves an account by them, is said by the toolkit."""
    if operation == "api_create_auth_config":
        body["auth_config"] = {"authScheme": "OAUTH2", "credentials": {"client_id": "a-client"}}
    if operation == "api_link_account":
        body["auth_config_id"] = _CONFIG
    if operation == "api_create_connected_account":
        body["auth_config"] = {"id": _CONFIG}
    body.pop("connection" if operation == "api_change_connected_account" else "state", None)
    if isinstance(body.get("connection"), dict):
        body["connection"].pop("state", None)


def _make_true_of_tools(body: dict[str, Any], operation: str) -> None:
    """Which arguments a tool takes is said by the tool. And a user that there is not would get a sandbox."""
    if operation.startswith("api_execute"):
        body["arguments"] = {"code_to_execute": "1"}
    for name, there in (("tool_slug", _TOOL), ("slug", _TOOL), ("user_id", _USER)):
        if name in body and operation.startswith("api_execute"):
            body[name] = there


def _make_true_of_sessions(body: dict[str, Any], operation: str) -> None:
    """What rules out what, in the sessions API, which says so in words; and what it does not have."""
    if "workbench" in body:
        body.pop("sandbox", None)
    if operation == "api_change_session":
        # Others need it.
        for sandbox in (body.get("sandbox"), body.get("workbench")):
            (sandbox or {}).pop("enable", None)
    for switch in ("proxy_execute", "hooks", "expected_config_version"):
        body.pop(switch, None)
    for choice in [body.get("toolkits"), *(body.get("tools") or {}).values()]:
        if isinstance(choice, dict) and choice.get("enable") is not None:
            choice.pop("disable", None)
    experimental = body.get("experimental") or {}
    for name in ("permissions", "session_config_id"):
        experimental.pop(name, None)
    tools = [*(experimental.get("custom_tools") or ())]
    for one, kit in enumerate(experimental.get("custom_toolkits") or ()):
        kit["slug"] = f"kit{one}"
        tools += kit["tools"]
    for one, tool in enumerate(tools):
        # Names are short, and no two are alike.
        tool["slug"] = f"tool-{one}"
        if tool.get("extends_toolkit"):
            tool["extends_toolkit"] = tool["extends_toolkit"][:10]


def _make_true_of_files(body: dict[str, Any], operation: str) -> None:
    """Paths have rules that are told in words, and most are of files that are not there."""
    for name in ("path", "mount_relative_path"):
        if name in body:
            body[name] = f"doomed/{next(_DOOMED)}" if operation.endswith("delete_file") else _FILE
    if "url" in body:
        # What is refused as well: it leads to this machine.
        body["url"] = "http://127.0.0.1:9/file"
