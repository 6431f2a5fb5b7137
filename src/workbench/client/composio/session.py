"""A session of the sessions API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import httpx2

from workbench.client._sending import Sender
from workbench.client.composio import _custom, _requests
from workbench.client.composio._custom import CustomTools
from workbench.client.composio._options import (
    Listed,
    ManageConnectionsOptions,
    MultiAccountOptions,
    SandboxOptions,
    json_object,
)
from workbench.client.composio._requests import Method
from workbench.client.composio.connections import ConnectionRequest
from workbench.client.composio.files import SessionFiles
from workbench.client.composio.values import (
    Answers,
    ExecuteResponse,
    JsonObject,
    McpServer,
    SearchResponse,
    ToolkitPage,
)
from workbench.client.values import UNCHANGED, Unchanged
from workbench.wire.composio import Config, ConfigHistory, DeletedSession, SandboxShown
from workbench.wire.composio_custom import NamedTool, NamedToolkit
from workbench.wire.composio_custom import Session as SessionRecord
from workbench.wire.composio_tools import Proxied, ToolShown


class SessionExperimental:
    """What is under this name in the field's own SDKs."""

    def __init__(self, files: SessionFiles, assistive_prompt: str) -> None:
        self.files = files
        self.assistive_prompt = assistive_prompt
        """what a model may be told about its tools"""


class ComposioSession:
    """A session: its tools, its sandbox and its files. May be used by many threads at once."""

    def __init__(self, sender: Sender, record: SessionRecord, custom: CustomTools) -> None:
        self._sender = sender
        self._custom = custom
        self._record = record
        self.session_id = record.session_id
        self.mcp = _mcp(sender, record)
        files = SessionFiles(sender, record.session_id)
        self.experimental = SessionExperimental(files, record.experimental.assistive_prompt)
        for one in self.custom_tools():
            custom.called(one.slug, one.original_slug)

    @property
    def user_id(self) -> str:
        """The user of yours that it belongs to."""
        return self.config.user_id

    @property
    def config(self) -> Config:
        """How it was set up when it was last asked or changed from here."""
        return self._record.config

    @property
    def config_version(self) -> int:
        """One more with every change; `update` can be told to change this one only."""
        return self._record.config_version

    @property
    def sandbox(self) -> SandboxShown:
        """Whether it has a sandbox, and of what size."""
        return self.config.workbench

    @property
    def workbench(self) -> SandboxShown:
        """Another name for `sandbox`."""
        return self.config.workbench

    @property
    def tool_router_tools(self) -> list[str]:
        """The names of its tools."""
        return list(self._record.tool_router_tools)

    def tools(self) -> list[JsonObject]:
        """Its tools, as OpenAI's models are told of functions."""
        return [
            {
                "type": "function",
                "function": {
                    "name": one.slug,
                    "description": one.description,
                    "parameters": one.input_parameters,
                },
            }
            for one in self.raw_tools()
        ]

    def raw_tools(self) -> list[ToolShown]:
        """The same, as the server tells of them."""
        found: list[ToolShown] = []
        cursor: str | None = None
        while True:
            page = self._sender.send(_requests.list_tools(self.session_id, cursor))
            found += page.items
            if not (cursor := page.next_cursor):
                return found

    def execute(
        self,
        tool_slug: str,
        arguments: Mapping[str, object] | None = None,
        *,
        account: str | None = None,
        input_responses: Mapping[str, object] | None = None,
        request_state: str | None = None,
    ) -> ExecuteResponse:
        """Run a tool, and wait for its end. A tool that failed is an answer, with `error`; it is never sent twice.

        The server answers at once that it has the call, and sends white space until the tool has ended; what fails
        in between, before the tool begins, is an answer as well, whose `error` begins with `not run`. Where a person
        has to approve it first, the answer is `input_required`: ask them what `input_requests` say, and call it again
        with `input_responses`, `{id: {"action": "accept", "content": {...}}}`, and with `request_state`.

        Raises:
            WorkbenchError: the call was refused.
            ServerUnavailable: the connection was lost; the message says whether it may have been done.
        """
        if arguments is not None:
            arguments = json_object("arguments", arguments)
        if (mine := self._custom.find(tool_slug)) is not None:
            return _custom.run(mine, dict(arguments or {}))
        answers = None
        if input_responses is not None or request_state is not None:
            answers = Answers(responses=input_responses or {}, state=request_state or "")
        if tool_slug == _custom.MANY and arguments and _custom.are_among(arguments.get("tools"), self._custom):
            return _custom.run_among(
                arguments, self._custom, lambda others: self._execute(tool_slug, others, account, answers)
            )
        return self._execute(tool_slug, arguments, account, answers)

    def _execute(
        self, slug: str, arguments: Mapping[str, object] | None, account: str | None, answers: Answers | None
    ) -> ExecuteResponse:
        definitions = self._custom.definitions()
        return self._sender.send(
            _requests.execute(
                self.session_id, slug, arguments, account=account, definitions=definitions, answers=answers
            )
        )

    def execute_meta(self, slug: str, arguments: Mapping[str, object] | None = None) -> ExecuteResponse:
        """The same for COMPOSIO_… only, at the address that takes nothing else."""
        return self._sender.send(
            _requests.execute(
                self.session_id, slug, arguments, account=None, definitions=self._custom.definitions(), meta=True
            )
        )

    def search(self, query: str, *, model: str | None = None, toolkits: Iterable[str] | None = None) -> SearchResponse:
        """Tools for a task that is told in words."""
        return self._sender.send(
            _requests.search(
                self.session_id, query, model=model, toolkits=toolkits, definitions=self._custom.definitions()
            )
        )

    def toolkits(
        self,
        *,
        toolkits: Iterable[str] | None = None,
        next_cursor: str | None = None,
        limit: int | None = None,
        is_connected: bool | None = None,
        search: str | None = None,
    ) -> ToolkitPage:
        """Which there are, and which of them are connected."""
        return self._sender.send(
            _requests.list_toolkits(
                self.session_id,
                toolkits=toolkits,
                cursor=next_cursor,
                limit=limit,
                is_connected=is_connected,
                search=search,
            )
        )

    def authorize(
        self, toolkit: str, *, callback_url: str | None = None, alias: str | None = None
    ) -> ConnectionRequest:
        """Ask for an account of the user's: they go to its `redirect_url`."""
        linked = self._sender.send(_requests.link(self.session_id, toolkit, callback_url=callback_url, alias=alias))
        return ConnectionRequest(self._sender, linked)

    def proxy_execute(
        self,
        *,
        toolkit: str,
        endpoint: str,
        method: Method,
        body: object = None,
        parameters: Iterable[Mapping[str, object]] | None = None,
    ) -> Proxied:
        """Ask the API behind a toolkit, with the user's account; never sent twice."""
        request = _requests.proxy_execute(
            self.session_id, toolkit=toolkit, endpoint=endpoint, method=method, body=body, parameters=parameters
        )
        return self._sender.send(request)

    def custom_tools(self, *, toolkit: str | None = None) -> list[NamedTool]:
        """Those that run in this program, under the names that the server gave them."""
        grouped = self.custom_toolkits()
        if toolkit is not None:
            return [tool for kit in grouped if kit.slug.lower() == toolkit.lower() for tool in kit.tools]
        alone = self._record.experimental.custom_tools or ()
        return [*alone, *(tool for kit in grouped for tool in kit.tools)]

    def custom_toolkits(self) -> list[NamedToolkit]:
        """Those that were given as a group."""
        return list(self._record.experimental.custom_toolkits or ())

    def update(
        self,
        *,
        toolkits: Listed | Unchanged | None = UNCHANGED,
        tools: Mapping[str, Listed] | Unchanged | None = UNCHANGED,
        tags: Listed | Unchanged | None = UNCHANGED,
        auth_configs: Mapping[str, str] | Unchanged | None = UNCHANGED,
        connected_accounts: Mapping[str, str | Iterable[str]] | Unchanged | None = UNCHANGED,
        manage_connections: bool | ManageConnectionsOptions | Mapping[str, Any] | Unchanged | None = UNCHANGED,
        sandbox: SandboxOptions | Mapping[str, Any] | Unchanged | None = UNCHANGED,
        workbench: SandboxOptions | Mapping[str, Any] | Unchanged | None = UNCHANGED,
        multi_account: MultiAccountOptions | Mapping[str, Any] | Unchanged | None = UNCHANGED,
        proxy_execute: bool | Mapping[str, Any] | Unchanged | None = UNCHANGED,
        preload: Iterable[str] | Mapping[str, Any] | Unchanged | None = UNCHANGED,
        search: bool | Mapping[str, Any] | Unchanged | None = UNCHANGED,
        execute: Mapping[str, Any] | Unchanged | None = UNCHANGED,
        experimental: Mapping[str, Any] | Unchanged | None = UNCHANGED,
        expected_config_version: int | None = None,
    ) -> Config:
        """Set it up anew: what is left out stays, None takes back what was said before. Tools of this program's are
        said by `create` and `use`.

        Raises:
            Conflict: it is not at `expected_config_version` any more; nothing was changed.
        """
        told: dict[str, object] = {
            "toolkits": toolkits,
            "tools": tools,
            "tags": tags,
            "auth_configs": auth_configs,
            "connected_accounts": connected_accounts,
            "manage_connections": manage_connections,
            "multi_account": multi_account,
            "proxy_execute": proxy_execute,
            "preload": preload,
            "search": search,
            "execute": execute,
            "experimental": experimental,
        }
        asked = _requests.blocks(told, sandbox=sandbox, workbench=workbench, nothing=UNCHANGED)
        request = _requests.change_session(self.session_id, asked, expected_config_version)
        changed, known = self._sender.send(request), self._record.experimental
        # The server does not keep tools of this program's, and so does not tell of them here.
        shown = changed.experimental.model_copy(
            update={"custom_tools": known.custom_tools, "custom_toolkits": known.custom_toolkits}
        )
        self._record = changed.model_copy(update={"experimental": shown})
        self.experimental.assistive_prompt = shown.assistive_prompt
        return self.config

    def list_config_history(self, *, cursor: str | None = None, limit: int | None = None) -> ConfigHistory:
        """How it was set up before, newest first."""
        return self._sender.send(_requests.list_config_history(self.session_id, cursor, limit))

    def delete(self) -> DeletedSession:
        """End it, and drop its files and its history."""
        return self._sender.send(_requests.delete_session(self.session_id))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.session_id} of {self.user_id!r}>"


def _mcp(sender: Sender, record: SessionRecord) -> McpServer:
    # BARRIER: who answers with an address of somebody else's would have the key sent there by the client that is given
    # these headers; held by tests/unit/client/composio/test_session.py.
    ours, there = httpx2.URL(sender.target.url), httpx2.URL(record.mcp.url)
    same = (ours.scheme, ours.host, _port(ours)) == (there.scheme, there.host, _port(there))
    headers = {"x-api-key": sender.target.key} if same else {}
    return McpServer(url=record.mcp.url, headers=headers, type=record.mcp.type)


def _port(url: httpx2.URL) -> int:
    return url.port or (443 if url.scheme == "https" else 80)
