"""The one description of the requests: what is sent for every operation, and how its answer is read.

Nothing here touches the network. The clients send these values, and neither knows an address or a field by itself.
"""

from __future__ import annotations

import difflib
import json
import secrets
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ValidationError

from workbench.client.values import UNCHANGED, LocalWorkbenchSession, SandboxOptions, Unchanged
from workbench.errors import InvalidRequest
from workbench.model.execution import DEFAULT_LIMIT_S
from workbench.model.records import CellKind
from workbench.wire import rest

Answer = TypeVar("Answer", covariant=True)
_Model = TypeVar("_Model", bound=BaseModel)

# How long the server may be silent by design when it makes, ends or copies a memory: its start-up code has minutes.
SLOW_S = 600.0
# How long the server is asked to wait for the end of a cell before it answers; then it is asked again.
WAIT_S = 20.0
_PAGE = 100
_LONGEST_KEY = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class Request(Generic[Answer]):
    """One call of the server."""

    method: str
    path: str
    """below the server's address"""
    parse: Callable[[Any], Answer]
    """from the JSON of a success; raises ValidationError if it is something else"""
    query: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    """JSON"""
    headers: Mapping[str, str] = field(default_factory=dict)
    again: bool = False
    """may be sent a second time when the answer is lost: the effect is that of one"""
    silence_s: float = 0.0
    """how long the server may be silent by design, on top of the client's patience"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What cells and commands have in common."""

    limit_s: float = DEFAULT_LIMIT_S
    thought: str = ""
    current_step: str = ""
    current_step_metric: str = ""
    idempotency_key: str | None = None


def create_session(
    user_id: str,
    *,
    sandbox: SandboxOptions | Mapping[str, object] | None,
    workbench: SandboxOptions | Mapping[str, object] | None,
    id: str | None,  # noqa: A002  (the field's name)
    eager: bool,
    runtime: str | None = None,
) -> Request[rest.Session]:
    """A new session."""
    if sandbox is not None and workbench is not None:
        raise InvalidRequest("sandbox= and workbench= are two names for the same; give one of them")
    options = sandbox if sandbox is not None else workbench
    asked: dict[str, object] = {"user_id": user_id, "eager": eager}
    if options is not None:
        asked["sandbox"] = _options("sandbox" if sandbox is not None else "workbench", options)
    asked |= given({"id": id, "runtime": runtime})
    return Request(
        method="POST",
        path="/v1/sessions",
        body=json_of(rest.CreateSession, asked),
        parse=rest.Session.model_validate,
        silence_s=SLOW_S,
    )


def get_session(session: str) -> Request[rest.Session]:
    """How it is."""
    return Request(method="GET", path=_session(session), parse=rest.Session.model_validate, again=True)


def list_sessions(user_id: str | None, cursor: str | None) -> Request[rest.SessionPage]:
    """A page of them."""
    query = given({"user_id": user_id, "cursor": cursor, "limit": str(_PAGE)})
    return Request(method="GET", path="/v1/sessions", query=query, parse=rest.SessionPage.model_validate, again=True)


def change_session(
    session: str,
    *,
    sandbox_size: rest.Size | None,
    snapshots: bool | None,
    freeze_after_s: int | Unchanged | None,
    end_after_s: int | Unchanged | None,
) -> Request[rest.Session]:
    """What is given changes, the rest stays."""
    change: dict[str, object] = given({"sandbox_size": sandbox_size, "snapshots": snapshots})
    limits = {"freeze_after_s": freeze_after_s, "end_after_s": end_after_s}
    if idle := {name: value for name, value in limits.items() if value is not UNCHANGED}:
        change["idle"] = idle
    if not change:
        raise InvalidRequest("nothing to change; give sandbox_size, snapshots, freeze_after_s or end_after_s")
    return Request(
        method="PATCH",
        path=_session(session),
        body=json_of(rest.ChangeSession, {"sandbox": change}),
        parse=rest.Session.model_validate,
        again=True,
        silence_s=SLOW_S,
    )


def delete_session(session: str) -> Request[None]:
    """It and its files."""
    return Request(method="DELETE", path=_session(session), parse=_nothing, silence_s=SLOW_S)


def run_cell(session: str, code: str, said: Said, *, mode: rest.Mode, store_history: bool) -> Request[rest.Cell]:
    """Code for the kernel."""
    asked: dict[str, object] = {"code": code, "store_history": store_history}
    return _run(f"{_session(session)}/cells", rest.RunCell, asked, said, mode)


def run_command(session: str, command: str, said: Said, *, mode: rest.Mode, cwd: str) -> Request[rest.Cell]:
    """A command line for bash."""
    return _run(f"{_session(session)}/commands", rest.RunCommand, {"command": command, "cwd": cwd}, said, mode)


def _run(
    path: str, model: type[BaseModel], asked: Mapping[str, object], said: Said, mode: rest.Mode
) -> Request[rest.Cell]:
    spoken = {
        "limit_s": said.limit_s,
        "mode": mode,
        "thought": said.thought,
        "current_step": said.current_step,
        "current_step_metric": said.current_step_metric,
    }
    # Without a key a lost answer could not be asked for again: nobody would know whether the code had run.
    key = secrets.token_hex(16) if said.idempotency_key is None else _header("idempotency_key", said.idempotency_key)
    return Request(
        method="POST",
        path=path,
        body=json_of(model, {**asked, **spoken}),
        headers={"Idempotency-Key": key},
        parse=rest.Cell.model_validate,
        again=True,
        silence_s=SLOW_S,
    )


def get_cell(session: str, kind: CellKind, cell: str, wait_s: float = 0.0) -> Request[rest.Cell]:
    """As it is, or at its end if that comes soon enough."""
    query = {"wait_s": f"{wait_s:g}"} if wait_s else {}
    return Request(
        method="GET",
        path=_cell(session, kind, cell),
        query=query,
        parse=rest.Cell.model_validate,
        again=True,
        silence_s=wait_s,
    )


def follow_cell(session: str, kind: CellKind, cell: str, offset: int) -> Request[None]:
    """Its output from an offset on, as events; not answered with JSON."""
    return Request(
        method="GET",
        path=f"{_cell(session, kind, cell)}/events",
        query={"offset": str(offset)},
        headers={"Accept": "text/event-stream"},
        parse=_nothing,
        again=True,
    )


def stop_cell(session: str, kind: CellKind, cell: str) -> Request[bool]:
    """This one and no other, so that asking twice is asking once."""
    return Request(method="POST", path=f"{_cell(session, kind, cell)}/stop", parse=_stopped, again=True)


def interrupt(session: str) -> Request[bool]:
    """Whatever its kernel runs."""
    return Request(method="POST", path=f"{_session(session)}/interrupt", parse=_stopped)


def restart(session: str) -> Request[rest.Session]:
    """A new memory."""
    return Request(
        method="POST", path=f"{_session(session)}/restart", parse=rest.Session.model_validate, silence_s=SLOW_S
    )


def undo(session: str, cells: int) -> Request[rest.Undone]:
    """Back over the last cells."""
    return Request(
        method="POST",
        path=f"{_session(session)}/undo",
        body=json_of(rest.Undo, {"cells": cells}),
        parse=rest.Undone.model_validate,
        silence_s=SLOW_S,
    )


def branch(session: str, *, copy: bool, id: str | None) -> Request[rest.Branched]:  # noqa: A002
    """A second session with the same memory."""
    return Request(
        method="POST",
        path=f"{_session(session)}/branch",
        body=json_of(rest.Branch, given({"copy": copy, "id": id})),
        parse=rest.Branched.model_validate,
        silence_s=SLOW_S,
    )


def create_context(
    session: str,
    *,
    id: str | None,  # noqa: A002
    runtime: str | None,
    working_folder: str | None,
) -> Request[rest.Session]:
    """A further kernel."""
    return Request(
        method="POST",
        path=f"{_session(session)}/contexts",
        body=json_of(rest.CreateContext, given({"id": id, "runtime": runtime, "working_folder": working_folder})),
        parse=rest.Session.model_validate,
        silence_s=SLOW_S,
    )


def list_contexts(session: str) -> Request[list[rest.Session]]:
    """Its further kernels."""
    return Request(
        method="GET",
        path=f"{_session(session)}/contexts",
        parse=lambda told: rest.Contexts.model_validate(told).items,
        again=True,
    )


def restart_context(session: str, context: str) -> Request[rest.Session]:
    """A new memory for one of them."""
    return Request(
        method="POST", path=f"{_context(session, context)}/restart", parse=rest.Session.model_validate, silence_s=SLOW_S
    )


def remove_context(session: str, context: str) -> Request[None]:
    """One of them."""
    return Request(method="DELETE", path=_context(session, context), parse=_nothing, silence_s=SLOW_S)


def keep_alive(session: str) -> Request[None]:
    """Counts as used now."""
    return Request(method="POST", path=f"{_session(session)}/keep-alive", parse=_nothing, again=True)


def list_variables(session: str) -> Request[list[rest.Variable]]:
    """Names of its memory."""
    return Request(
        method="GET",
        path=f"{_session(session)}/variables",
        parse=lambda found: rest.Variables.model_validate(found).items,
        again=True,
    )


def list_processes(session: str) -> Request[list[rest.BackgroundProcess]]:
    """What runs in its background."""
    return Request(
        method="GET",
        path=f"{_session(session)}/processes",
        parse=lambda found: rest.BackgroundProcesses.model_validate(found).items,
        again=True,
    )


def list_cells(session: str, cursor: str | None, *, newest_first: bool) -> Request[rest.CellPage]:
    """A page of what was run in it."""
    query = given({"cursor": cursor, "limit": str(_PAGE), "newest_first": "true" if newest_first else None})
    return Request(
        method="GET",
        path=f"{_session(session)}/history",
        query=query,
        parse=rest.CellPage.model_validate,
        again=True,
    )


def get_notebook(session: str) -> Request[rest.Notebook]:
    """The same, as a notebook."""
    return Request(method="GET", path=f"{_session(session)}/history.ipynb", parse=_object, again=True)


def create_token(session: str, lifetime_s: int) -> Request[rest.Token]:
    """For this session only."""
    body = json_of(rest.CreateToken, {"lifetime_s": lifetime_s})
    return Request(method="POST", path=f"{_session(session)}/tokens", body=body, parse=rest.Token.model_validate)


def create_local_sandbox(session: str, expires_in_s: int) -> Request[LocalWorkbenchSession]:
    """For a box that the caller runs."""
    body = json_of(rest.CreateLocalSandbox, {"expires_in_s": expires_in_s})
    return Request(method="POST", path=f"{_session(session)}/local-sandbox", body=body, parse=_local_session)


def _local_session(answer: Any) -> LocalWorkbenchSession:
    told = rest.LocalSandbox.model_validate(answer)
    return LocalWorkbenchSession(
        helper_source=told.helper_source, env=told.env, token_id=told.token_id, expires_at=told.expires_at
    )


def create_key(label: str, scopes: Iterable[str], lifetime_s: int | None) -> Request[rest.NewKey]:
    """Of the caller's project."""
    asked = {"label": label, "scopes": list(scopes), "lifetime_s": lifetime_s}
    body = json_of(rest.CreateKey, asked)
    return Request(method="POST", path="/v1/keys", body=body, parse=rest.NewKey.model_validate)


def list_keys() -> Request[list[rest.Key]]:
    """Of the caller's project."""
    return Request(method="GET", path="/v1/keys", parse=lambda found: rest.Keys.model_validate(found).items, again=True)


def rotate_key(key: str, overlap_s: int) -> Request[rest.NewKey]:
    """Another one in its place."""
    body = json_of(rest.RotateKey, {"overlap_s": overlap_s})
    return Request(
        method="POST", path=f"/v1/keys/{part_of_address(key)}/rotate", body=body, parse=rest.NewKey.model_validate
    )


def revoke_key(key: str) -> Request[rest.Key]:
    """No good from now on."""
    return Request(method="DELETE", path=f"/v1/keys/{part_of_address(key)}", parse=rest.Key.model_validate, again=True)


def delete_user(user_id: str) -> Request[int]:
    """All that there is of a user; tells how many sessions that were."""
    return Request(
        method="DELETE",
        path=f"/v1/users/{part_of_address(user_id)}",
        parse=lambda found: rest.UserDeleted.model_validate(found).sessions,
        silence_s=SLOW_S,
    )


def list_audit(before: str, session: str, limit: int) -> Request[list[rest.AuditEntry]]:
    """Who did what in the project."""
    also = {"before": before, "session": session}
    return Request(
        method="GET",
        path="/v1/audit",
        query={"limit": str(limit)} | {name: text for name, text in also.items() if text},
        parse=lambda found: rest.Audit.model_validate(found).items,
        again=True,
    )


def count_corrections() -> Request[list[rest.RuleCount]]:
    """How often rules of the corrections had something to do."""
    return Request(
        method="GET",
        path="/v1/corrections",
        parse=lambda found: rest.RuleCounts.model_validate(found).items,
        again=True,
    )


def part_of_address(name: str) -> str:
    """An id or a name, in a path."""
    # A name is one part of the address, whatever is in it: `../keys` asks for a session of that name, and for no keys.
    if not name:
        raise InvalidRequest("an id or a name may not be empty")
    try:
        quoted = quote(name, safe="")
    except UnicodeEncodeError:
        raise InvalidRequest(f"an id or a name has half a character in it: {name[:60]!a}; give it as text") from None
    return quoted.replace(".", "%2E") if not quoted.strip(".") else quoted


def _session(session: str) -> str:
    return f"/v1/sessions/{part_of_address(session)}"


def _context(session: str, context: str) -> str:
    return f"{_session(session)}/contexts/{part_of_address(context)}"


def _cell(session: str, kind: CellKind, cell: str) -> str:
    return f"{_session(session)}/{'cells' if kind is CellKind.CELL else 'commands'}/{part_of_address(cell)}"


def given(values: Mapping[str, Any]) -> dict[str, Any]:
    """Those that are not None."""
    return {name: value for name, value in values.items() if value is not None}


def _header(name: str, value: str) -> str:
    if not value or len(value) > _LONGEST_KEY or not (value.isascii() and value.isprintable()):
        raise InvalidRequest(f"{name} must be 1 to {_LONGEST_KEY} printable ASCII characters, not {value[:50]!r}")
    return value


def _options(where: str, given: Mapping[str, Any]) -> dict[str, object]:
    """The options with every name checked here, where a near miss can be named."""
    check_names(where, given, rest.Sandbox)
    if isinstance(idle := given.get("idle"), Mapping):
        check_names(f"{where}['idle']", idle, rest.Idle)
    return dict(given)


def check_names(where: str, given: Mapping[str, Any], model: type[BaseModel]) -> None:
    """Every name is one of the model's.

    Raises:
        InvalidRequest: one is not; the message has the one that was meant, most likely.
    """
    for name in given:
        if name not in model.model_fields:
            near = difflib.get_close_matches(str(name), model.model_fields, n=1, cutoff=0.5)
            hint = f"; did you mean {near[0]!r}?" if near else f"; there are: {', '.join(model.model_fields)}"
            raise InvalidRequest(f"no such option of {where}: {name!r}{hint}", {"option": str(name)})


def json_of(model: type[BaseModel], asked: Mapping[str, object]) -> bytes:
    """JSON of what was given, and of nothing else: what is left out is for the server to say."""
    try:
        value = model.model_validate(dict(asked))
        return json.dumps(value.model_dump(mode="json", by_alias=True, exclude_unset=True), allow_nan=False).encode()
    except ValidationError as problem:
        first = problem.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or model.__name__
        raise InvalidRequest(f"{where}: {first['msg']}", {"field": where}) from None
    except ValueError as problem:
        raise InvalidRequest(f"a number in the request cannot be sent: {problem}") from None


def _nothing(_answer: Any) -> None:
    return None


def _stopped(answer: Any) -> bool:
    return rest.Stopped.model_validate(answer).stopped


def _object(answer: Any) -> dict[str, Any]:
    if not isinstance(answer, dict):
        raise ValueError("not an object")
    return answer
