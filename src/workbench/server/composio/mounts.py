"""Files of a session in the sessions API: listed, linked to, and deleted. What is in them goes by links."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import Response

from workbench.core import mount_requests as requests
from workbench.core.links import address_of
from workbench.model.mounts import DEFAULT_PAGE, MOST_PAGE, LinkAction
from workbench.server.addresses import links_lead_to
from workbench.server.auth import InSession
from workbench.server.composio.answers import api_answer
from workbench.server.composio.reading import api_body
from workbench.server.composio.routes import BODY, Api, problems
from workbench.server.rest.files import CURSOR, MountPath, after_of, cursor_of
from workbench.server.rest.sessions import noted
from workbench.wire import composio_files as wire

api = Api()

_MOUNT = "/tool_router/session/{session_id}/mounts/{mount_id}"


@api.route(
    "GET",
    f"{_MOUNT}/items",
    operation_id="api_list_files",
    summary="List files",
    answers=wire.FileItems,
    responses=problems(404, 409),
)
async def list_(
    visit: InSession,
    mount_id: MountPath,
    mount_relative_prefix: Annotated[str, Query(description="Only those whose path begins so, in any folder.")] = "",
    cursor: Annotated[
        Annotated[str, Field(pattern=CURSOR)] | SkipJsonSchema[None],
        Query(description="The `next_cursor` of the page before."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_PAGE)] = DEFAULT_PAGE,
) -> Response:
    """A page of files, by path, those in folders as well. Whatever changes meanwhile: what stays is told once."""
    ask = requests.ListFiles(
        session=visit.session,
        mount=mount_id,
        prefix=mount_relative_prefix,
        after=after_of(cursor or ""),
        limit=limit,
    )
    found = await visit.workbench.mounts.list(ask)
    items = [
        wire.FileItem(mount_relative_path=one.path, size=one.size, last_modified=one.modified_at) for one in found.files
    ]
    return api_answer(
        wire.FileItems(items=items, next_cursor=None if found.next_after is None else cursor_of(found.next_after))
    )


@api.route(
    "POST",
    f"{_MOUNT}/upload_url",
    operation_id="api_upload_url",
    summary="Make a link for an upload",
    status=201,
    answers=wire.UploadUrl,
    responses=problems(*BODY, 404, 409),
)
async def upload_url(
    request: Request,
    visit: InSession,
    mount_id: MountPath,
    sent: Annotated[wire.AskUploadUrl, api_body(wire.AskUploadUrl)],
) -> Response:
    """A link to which one file can be sent by PUT, for an hour."""
    ask = requests.MakeLink(
        session=visit.session, mount=mount_id, path=sent.mount_relative_path, action=LinkAction.UPLOAD
    )
    async with noted(visit, "file.link_upload", visit.session):
        made = await visit.workbench.mounts.link(ask)
    url = links_lead_to(request.scope, visit.door.options) + address_of(made)
    told = wire.UploadUrl(upload_url=url, mount_relative_path=made.link.path, expires_at=made.expires_at)
    return api_answer(told, 201)


@api.route(
    "POST",
    f"{_MOUNT}/download_url",
    operation_id="api_download_url",
    summary="Make a link for a download",
    answers=wire.DownloadUrl,
    responses=problems(*BODY, 404, 409),
)
async def download_url(
    request: Request,
    visit: InSession,
    mount_id: MountPath,
    sent: Annotated[wire.AskDownloadUrl, api_body(wire.AskDownloadUrl)],
) -> Response:
    """A link by which one file can be read, for an hour. It must be there: a link to nothing would fail later."""
    ask = requests.MakeLink(
        session=visit.session, mount=mount_id, path=sent.mount_relative_path, action=LinkAction.DOWNLOAD
    )
    async with noted(visit, "file.link_download", visit.session):
        made = await visit.workbench.mounts.link(ask)
    url = links_lead_to(request.scope, visit.door.options) + address_of(made)
    return api_answer(
        wire.DownloadUrl(download_url=url, mount_relative_path=made.link.path, expires_at=made.expires_at)
    )


@api.route(
    "POST",
    f"{_MOUNT}/delete",
    operation_id="api_delete_file",
    summary="Delete a file or a folder",
    answers=wire.DeletedFile,
    responses=problems(*BODY, 404, 409),
)
async def delete(
    visit: InSession,
    mount_id: MountPath,
    sent: Annotated[wire.AskDelete, api_body(wire.AskDelete)],
) -> Response:
    """A file, or a folder with all that is in it; of a link the link itself."""
    ask = requests.DeleteFile(session=visit.session, mount=mount_id, path=sent.mount_relative_path)
    async with noted(visit, "file.delete", visit.session):
        gone = await visit.workbench.mounts.delete(ask)
    return api_answer(wire.DeletedFile(mount_relative_path=gone.path))
