"""Sessions of the sessions API: made, looked at, changed and deleted, and the versions of how they were set up."""

from __future__ import annotations

import secrets
import string
from typing import Annotated

from fastapi import Query, Request
from starlette.responses import Response

from workbench.core import requests
from workbench.core.router.offered import offered
from workbench.model.configuration import SessionConfig
from workbench.model.ids import SessionId
from workbench.model.session import Session
from workbench.model.tier import STANDARD
from workbench.server.addresses import reached_by
from workbench.server.auth import InProject, InSession, OwningSession
from workbench.server.composio.answers import api_answer
from workbench.server.composio.configuring import changed, shown_config, wanted_tier
from workbench.server.composio.paging import Cursor
from workbench.server.composio.reading import api_body
from workbench.server.composio.routes import BODY, Api, problems
from workbench.server.door import Visit
from workbench.server.rest.sessions import noted
from workbench.wire import composio as wire
from workbench.wire import composio_custom as custom

api = Api()

_ALPHABET = string.ascii_lowercase + string.digits
_MOST_PAGE, _DEFAULT_PAGE = 100, 20


@api.route(
    "POST",
    "/tool_router/session",
    operation_id="api_create_session",
    summary="Make a session",
    status=201,
    answers=custom.Session,
    responses=problems(*BODY, 409, 429),
)
async def create(
    request: Request, visit: InProject, sent: Annotated[custom.CreateSession, api_body(custom.CreateSession)]
) -> Response:
    """A new session. Its sandbox is made with the first call that needs one."""
    ask = requests.CreateSession(
        session=_new_name(),
        user=sent.user_id,
        tier=wanted_tier(sent) or STANDARD,
        config=changed(SessionConfig(), sent),
    )
    visit.note.session = ask.session
    async with noted(visit, "session.create", ask.session, ask.user):
        made = await visit.workbench.create_session(ask)
    return api_answer(_shown(request, visit, made.session, sent.experimental), 201)


@api.route(
    "GET",
    "/tool_router/session/{session_id}",
    operation_id="api_get_session",
    summary="Look at a session",
    answers=custom.Session,
    responses=problems(404, 409),
)
async def get(request: Request, visit: InSession) -> Response:
    """How it is set up, however it was made. Starts nothing, and does not count as use."""
    return api_answer(_shown(request, visit, await visit.workbench.configurations.get(visit.session)))


@api.route(
    "POST",
    "/tool_router/session/{session_id}/attach",
    operation_id="api_attach_session",
    summary="Use a session with tools of your own",
    answers=custom.Session,
    responses=problems(*BODY, 404, 409),
)
async def attach(
    request: Request, visit: InSession, sent: Annotated[custom.AttachSession, api_body(custom.AttachSession)]
) -> Response:
    """The session, and the names by which tools of the caller's are called in it. Nothing of them is kept."""
    record = await visit.workbench.configurations.get(visit.session)
    return api_answer(_shown(request, visit, record, sent.experimental))


@api.route(
    "PATCH",
    "/tool_router/session/{session_id}",
    operation_id="api_change_session",
    summary="Change how a session is set up",
    answers=custom.Session,
    responses=problems(*BODY, 404, 409, 429),
)
async def change(
    request: Request, visit: OwningSession, sent: Annotated[wire.ChangeSession, api_body(wire.ChangeSession)]
) -> Response:
    """A new version of its configuration. What is left out stays; null is what a new session has. Another size comes at
    once, with its memory kept.
    """
    ask = requests.ChangeConfiguration(
        session=visit.session,
        change=lambda config: changed(config, sent),
        tier=wanted_tier(sent),
        expected_version=sent.expected_config_version,
    )
    async with noted(visit, "session.change", visit.session):
        record = await visit.workbench.configurations.change(ask)
    return api_answer(_shown(request, visit, record))


@api.route(
    "DELETE",
    "/tool_router/session/{session_id}",
    operation_id="api_delete_session",
    summary="Delete a session",
    answers=wire.DeletedSession,
    responses=problems(404, 409),
)
async def delete(visit: OwningSession) -> Response:
    """End what runs in it, and drop its memory, its history and its files, unless branches still share them."""
    # Before: afterwards nobody knows whose it was, and what is noted of it could not be forgotten with them.
    user = await visit.workbench.user_of(visit.session)
    async with noted(visit, "session.delete", visit.session, user):
        await visit.workbench.delete_session(requests.DeleteSession(session=visit.session))
    return api_answer(wire.DeletedSession(session_id=visit.session))


@api.route(
    "GET",
    "/tool_router/session/{session_id}/config_history",
    operation_id="api_config_history",
    summary="List versions of a configuration",
    answers=wire.ConfigHistory,
    responses=problems(404, 409),
)
async def config_history(
    visit: InSession,
    cursor: Cursor = None,
    limit: Annotated[int, Query(ge=1, le=_MOST_PAGE)] = _DEFAULT_PAGE,
) -> Response:
    """A page of them, the newest first; the first of all is the one that holds."""
    record = await visit.workbench.configurations.get(visit.session)
    before = None if cursor is None else int(cursor)
    ask = requests.ListConfigurations(session=visit.session, before=before, limit=limit)
    page = await visit.workbench.configurations.history(ask)
    newest = max([record.config_version, *(one.version for one in page.items)])
    items = [
        wire.ConfigVersion(
            version=one.version,
            created_at=one.at,
            is_current=one.version == newest,
            config=shown_config(record.spec.user, one.tier, one.config),
        )
        for one in page.items
    ]
    skipped = newest - items[0].version if items else page.total
    return api_answer(
        wire.ConfigHistory(
            items=items,
            next_cursor=None if page.next_before is None else str(page.next_before),
            total_pages=-(-page.total // limit),
            current_page=skipped // limit + 1,
            total_items=page.total,
        )
    )


def _new_name() -> SessionId:
    return SessionId("trs_" + "".join(secrets.choice(_ALPHABET) for _ in range(16)))


def _shown(
    request: Request, visit: Visit, record: Session, brought: custom.CustomTools | None = None
) -> custom.Session:
    spec = record.spec
    own = brought or custom.CustomTools()
    return custom.Session(
        session_id=spec.id,
        mcp=wire.McpAddress(url=f"{reached_by(request.scope, visit.door.options)}/tool_router/{spec.id}/mcp"),
        tool_router_tools=list(offered(spec.config)),
        config=shown_config(spec.user, spec.tier.name, spec.config),
        config_version=record.config_version,
        experimental=custom.ExperimentsShown(
            assistive_prompt=_prompt(spec.config),
            custom_tools=custom.named_tools(own) or None,
            custom_toolkits=custom.named_toolkits(own) or None,
        ),
    )


def _prompt(config: SessionConfig) -> str:
    """Only what is so in this session."""
    if config.sandbox.enable:
        words = (
            "This session has a sandbox of its own. COMPOSIO_REMOTE_WORKBENCH runs Python in it and keeps variables "
            "between calls; COMPOSIO_REMOTE_BASH_TOOL runs bash in the same place. Put what must last, or what others "
            "should get, under /mnt/files."
        )
    else:
        words = "This session has no sandbox: code cannot be run in it. Its files are still there."
    return f"{words} The user's time zone is {config.timezone}." if config.timezone else words
