"""What helpers inside a sandbox are answered with: a model, a search, tools, links to files."""

from __future__ import annotations

import json
import mimetypes
import posixpath
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from workbench.contracts.services import LanguageModel, Question, WebSearch
from workbench.core.installs import Installs, read_asked
from workbench.core.links import address_of
from workbench.core.mount_requests import MakeLink, OpenMountFile
from workbench.core.mounts import Mounts
from workbench.core.router.basic_tools import ANSWER, CHAT, listed
from workbench.core.router.proxying import RawCall
from workbench.core.router.router import Router
from workbench.errors import Denied, InvalidRequest, NotConfigured, PackageRefused
from workbench.model.execution import Correction
from workbench.model.ids import ProjectId
from workbench.model.mounts import LinkAction
from workbench.model.session import Session
from workbench.model.toolkit import ToolCall

# From here on a service says that it did not do it.
_REFUSED = 400
_MOST_SAID = 500
_NEEDS_TOOLS = frozenset({"run_tool", "invoke_llm", "web_search"})
_NO_SERVER = (
    "a link needs a workbench server that it leads to, and none runs: start one by `workbench serve`; who runs the "
    "workbench has the files of /mnt/files by `workbench files get`"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Helped:
    """What a helper gets, and what it cost."""

    result: Any
    error: str = ""
    """what a service said to a call that was made; the result is its whole answer then"""
    code: str = ""
    """of the error, if it is one that callers tell apart"""
    prompt_tokens: int = 0
    completion_tokens: int = 0
    corrections: tuple[Correction, ...] = ()
    """what the result of the cell that asked is to tell"""


class Helpers:
    """The operations by their names. `address` is that of the server, if there is one."""

    def __init__(
        self,
        *,
        model: LanguageModel,
        search: WebSearch,
        router: Router,
        mounts_of: Callable[[ProjectId], Mounts],
        address: str,
        installs: Installs,
    ) -> None:
        self._model = model
        self._search = search
        self._router = router
        self._mounts_of = mounts_of
        self._address = address
        self._installs = installs
        self._operations: Mapping[str, Callable[[Session, dict[str, Any]], Awaitable[Helped]]] = {
            "run_tool": self._run_tool,
            "proxy": self._proxy,
            "invoke_llm": self._invoke_llm,
            "web_search": self._web_search,
            "file_link": self._file_link,
            "file_key": self._file_key,
            "install": self._install,
        }

    def check(self, operation: str) -> None:
        """Raises: InvalidRequest if there is none of that name."""
        if operation not in self._operations:
            raise InvalidRequest(
                f"no such operation: {operation[:60]!r}; there are {', '.join(sorted(self._operations))}"
            )

    def check_allowed(self, operation: str, session: Session) -> None:
        """Raises: Denied if the session was made without it."""
        if operation in _NEEDS_TOOLS and not session.spec.config.sandbox.tool_execution:
            raise Denied(f"tool execution is switched off for session {session.spec.id}, and {operation} with it")

    async def run(self, operation: str, session: Session, arguments: dict[str, Any]) -> Helped:
        """On behalf of a session. Raises: what the services raise."""
        return await self._operations[operation](session, arguments)

    async def _invoke_llm(self, session: Session, arguments: dict[str, Any]) -> Helped:
        # BARRIER: the model and the search are tools as well, and who has ruled those out, or wants to approve them
        # first, means both; held by tests/unit/core/test_guest_calls.py.
        query = _text(arguments, "query")
        await self._router.check_usable(ToolCall(slug=CHAT, arguments={"query": query}, session=session))
        effort = arguments.get("reasoning_effort") or ""
        question = Question(query, effort if isinstance(effort, str) else repr(effort))
        done = await self._model.complete(question)
        return Helped(result=done.text, prompt_tokens=done.prompt_tokens, completion_tokens=done.completion_tokens)

    async def _web_search(self, session: Session, arguments: dict[str, Any]) -> Helped:
        # BARRIER: as above.
        query = _text(arguments, "query")
        await self._router.check_usable(ToolCall(slug=ANSWER, arguments={"query": query}, session=session))
        return Helped(result=listed(await self._search.search(query)))

    async def _run_tool(self, session: Session, arguments: dict[str, Any]) -> Helped:
        given, account = arguments.get("arguments"), arguments.get("account")
        if not isinstance(given or {}, dict):
            raise InvalidRequest(f"arguments must be an object, not {type(given).__name__}")
        call = ToolCall(
            slug=_text(arguments, "tool_slug"),
            arguments=given or {},
            session=session,
            account=account if isinstance(account, str) else "",
        )
        done = await self._router.run_inside(call)
        told = {
            "data": done.data,
            "error": done.error or None,
            "log_id": done.log_id,
            "result_type": "failed" if done.error else "completed",
        }
        return Helped(result=told, prompt_tokens=done.prompt_tokens, completion_tokens=done.completion_tokens)

    async def _proxy(self, session: Session, arguments: dict[str, Any]) -> Helped:
        call = RawCall(
            toolkit=_text(arguments, "toolkit"),
            endpoint=_text(arguments, "endpoint"),
            method=_text(arguments, "method"),
            body=arguments.get("body"),
            query=_pairs(arguments, "query_params"),
            headers=_pairs(arguments, "headers"),
        )
        made = await self._router.proxy_inside(session, call)
        if made.problem:
            return Helped(result=made.told(), error=made.problem)
        if made.status >= _REFUSED:
            words = json.dumps(made.told()["data"], ensure_ascii=False)[:_MOST_SAID]
            return Helped(result=made.told(), error=f"API returned status {made.status}: {words}")
        return Helped(result=made.told()["data"])

    async def _install(self, session: Session, arguments: dict[str, Any]) -> Helped:
        done = await self._installs.install(session, read_asked(arguments))
        corrections = () if done.correction is None else (done.correction,)
        if done.refused:
            return Helped(result=None, error=done.refused, code=PackageRefused.code, corrections=corrections)
        text = done.correction.text if done.correction is not None else ""
        told = {"installed": list(done.installed), "present": list(done.present), "text": text}
        return Helped(result=told, corrections=corrections)

    async def _file_link(self, session: Session, arguments: dict[str, Any]) -> Helped:
        if not self._address:
            raise NotConfigured(_NO_SERVER)
        wanted = MakeLink(session=session.spec.id, path=_text(arguments, "path"), action=LinkAction.DOWNLOAD)
        made = await self._mounts_of(session.spec.project).link(wanted)
        assert made.file is not None
        name = posixpath.basename(made.link.path)
        return Helped(
            result={
                "url": self._address + address_of(made),
                "expires_at": made.expires_at,
                "name": name,
                "size": made.file.size,
                "type": mimetypes.guess_type(name)[0] or "application/octet-stream",
                "id": f"{session.mount}-{made.file.version}",
                "key": f"{session.mount}/{made.link.path}",
            }
        )

    async def _file_key(self, session: Session, arguments: dict[str, Any]) -> Helped:
        wanted = OpenMountFile(session=session.spec.id, path=_text(arguments, "path"))
        file = await self._mounts_of(session.spec.project).describe_file(wanted)
        return Helped(result=f"{session.mount}/{file.path}")


def _pairs(arguments: dict[str, Any], name: str) -> tuple[tuple[str, str], ...]:
    table = arguments.get(name) or {}
    if not isinstance(table, dict):
        raise InvalidRequest(f"{name} must be an object, not {type(table).__name__}")
    # A list is one parameter several times, as in addresses.
    pairs = [(key, one) for key, value in table.items() for one in (value if isinstance(value, list) else [value])]
    return tuple((str(key), one if isinstance(one, str) else json.dumps(one)) for key, one in pairs if one is not None)


def _text(arguments: dict[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str) or not value.strip():
        raise InvalidRequest(f"{name} must be a text that is not empty, not {type(value).__name__}")
    return value
