"""Files of a session: listed, linked to, fetched and deleted. What is in them goes by links, and not by here."""

from __future__ import annotations

import base64
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request
from pydantic import Field
from pydantic.json_schema import SkipJsonSchema
from starlette.responses import Response

from workbench.core import mount_requests as requests
from workbench.core.links import address_of
from workbench.model.mounts import DEFAULT_PAGE, MOST_PAGE, LinkAction
from workbench.server.addresses import links_lead_to
from workbench.server.answers import answer
from workbench.server.auth import InSession
from workbench.server.questions import body_of
from workbench.server.rest.sessions import noted
from workbench.server.routes import BODY, problems
from workbench.wire import rest_files

router = APIRouter(prefix="/v1/sessions/{session_id}/mounts/{mount_id}", tags=["files"])

# Whatever is base64 is some place in the order of paths.
CURSOR = r"^([A-Za-z0-9_-]{4})*([A-Za-z0-9_-]{2,3})?$"
MountPath = Annotated[str, Path(description="Which mount; `files` is the one there is.")]


@router.get(
    "",
    operation_id="get_mount",
    summary="Look at a mount",
    response_model=rest_files.Mount,
    responses=problems(404, 409),
)
async def describe(visit: InSession, mount_id: MountPath) -> Response:
    """How much is in it, and how much may be. It is counted for this, which takes a while where there is much."""
    told = await visit.workbench.mounts.describe(requests.DescribeMount(session=visit.session, mount=mount_id))
    use, quota = told.use, told.quota
    return answer(
        rest_files.Mount(
            id=mount_id,
            bytes=use.bytes,
            files=use.files,
            most_bytes=quota.bytes,
            most_files=quota.files,
            complete=use.complete,
            coming_bytes=use.coming_bytes,
            unsaved=use.unsaved,
        )
    )


@router.get(
    "/items",
    operation_id="list_files",
    summary="List files",
    response_model=rest_files.FilePage,
    responses=problems(404, 409),
)
async def list_(
    visit: InSession,
    mount_id: MountPath,
    prefix: Annotated[str, Query(description="Only those whose path begins so.")] = "",
    cursor: Annotated[
        Annotated[str, Field(pattern=CURSOR)] | SkipJsonSchema[None],
        Query(description="The `next_cursor` of the page before."),
    ] = None,
    limit: Annotated[int, Query(ge=1, le=MOST_PAGE)] = DEFAULT_PAGE,
) -> Response:
    """A page of files, by path. Whatever changes meanwhile: what stays is told once. A page may have fewer."""
    ask = requests.ListFiles(
        session=visit.session, mount=mount_id, prefix=prefix, after=after_of(cursor or ""), limit=limit
    )
    found = await visit.workbench.mounts.list(ask)
    return answer(
        rest_files.FilePage(
            items=[rest_files.File.model_validate(one) for one in found.files],
            next_cursor=None if found.next_after is None else cursor_of(found.next_after),
            skipped=found.skipped,
        )
    )


@router.post(
    "/upload_url",
    operation_id="make_upload_link",
    summary="Make a link for an upload",
    response_model=rest_files.UploadLink,
    responses=problems(*BODY, 404, 409),
)
async def upload_url(
    request: Request,
    visit: InSession,
    mount_id: MountPath,
    sent: Annotated[rest_files.MakeUploadLink, body_of(rest_files.MakeUploadLink)],
) -> Response:
    """A link to which one file can be sent: at once by PUT, or in pieces after breaks, as tus 1.0 has it."""
    ask = requests.MakeLink(
        session=visit.session,
        mount=mount_id,
        path=sent.path,
        action=LinkAction.UPLOAD,
        lifetime_s=sent.expires_in_s,
        size=sent.size,
    )
    async with noted(visit, "file.link_upload", visit.session):
        made = await visit.workbench.mounts.link(ask)
    url = links_lead_to(request.scope, visit.door.options) + address_of(made)
    return answer(rest_files.UploadLink(url=url, path=made.link.path, expires_at=made.expires_at))


@router.post(
    "/download_url",
    operation_id="make_download_link",
    summary="Make a link for a download",
    response_model=rest_files.DownloadLink,
    responses=problems(*BODY, 404, 409),
)
async def download_url(
    request: Request,
    visit: InSession,
    mount_id: MountPath,
    sent: Annotated[rest_files.MakeDownloadLink, body_of(rest_files.MakeDownloadLink)],
) -> Response:
    """A link by which one file, which is there, can be read, whole or in ranges."""
    ask = requests.MakeLink(
        session=visit.session, mount=mount_id, path=sent.path, action=LinkAction.DOWNLOAD, lifetime_s=sent.expires_in_s
    )
    async with noted(visit, "file.link_download", visit.session):
        made = await visit.workbench.mounts.link(ask)
    file = made.file
    assert file is not None
    url = links_lead_to(request.scope, visit.door.options) + address_of(made)
    return answer(
        rest_files.DownloadLink(
            url=url, path=file.path, expires_at=made.expires_at, size=file.size, version=file.version
        )
    )


@router.post(
    "/fetch",
    operation_id="fetch_file",
    summary="Fetch a file from a URL",
    status_code=201,
    response_model=rest_files.File,
    responses=problems(*BODY, 404, 409, 429, 502),
)
async def fetch(
    visit: InSession,
    mount_id: MountPath,
    sent: Annotated[rest_files.FetchFile, body_of(rest_files.FetchFile)],
) -> Response:
    """A file that another server has, fetched by this one; only from addresses that everybody can reach."""
    ask = requests.FetchFile(session=visit.session, mount=mount_id, url=sent.url, path=sent.path)
    async with noted(visit, "file.fetch", visit.session):
        made = await visit.workbench.mounts.fetch(ask)
    return answer(rest_files.File.model_validate(made), 201)


@router.post(
    "/extract_text",
    operation_id="extract_text",
    summary="Read the text of a file",
    response_model=rest_files.ExtractedText,
    responses=problems(*BODY, 404, 409, 503),
)
async def extract_text(
    visit: InSession,
    mount_id: MountPath,
    sent: Annotated[rest_files.ExtractText, body_of(rest_files.ExtractText)],
) -> Response:
    """The text of a PDF, a picture, an office document, a mail or a table; read in the session's sandbox, or, if it has
    none, in one that is thrown away.
    """
    ask = requests.ExtractText(session=visit.session, mount=mount_id, path=sent.path)
    async with noted(visit, "file.extract", visit.session):
        told = await visit.workbench.extract_text(ask)
    return answer(rest_files.ExtractedText(path=told.path, text=told.text))


@router.post(
    "/delete",
    operation_id="delete_file",
    summary="Delete a file or a folder",
    response_model=rest_files.DeletedFiles,
    responses=problems(*BODY, 404, 409),
)
async def delete(
    visit: InSession,
    mount_id: MountPath,
    sent: Annotated[rest_files.DeleteFile, body_of(rest_files.DeleteFile)],
) -> Response:
    """A file, or a folder with all that is in it; of a link the link itself."""
    ask = requests.DeleteFile(session=visit.session, mount=mount_id, path=sent.path)
    async with noted(visit, "file.delete", visit.session):
        gone = await visit.workbench.mounts.delete(ask)
    return answer(rest_files.DeletedFiles(path=gone.path, files=gone.files))


def cursor_of(after: str) -> str:
    """Where the next page begins, as `CURSOR` has it."""
    return base64.urlsafe_b64encode(after.encode()).rstrip(b"=").decode()


def after_of(cursor: str) -> str:
    """Back again, of one that has been compared with `CURSOR`."""
    return base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode("utf-8", "replace")
