"""The requests of the files of a session, described as in _requests.py. What goes to links is in _transfers.py."""

from __future__ import annotations

from workbench.client._requests import SLOW_S, Request, given, json_of, part_of_address
from workbench.client.values import DeletedFiles, FilePage, ListedFile, MountUsage
from workbench.errors import InvalidRequest
from workbench.model.mounts import INSIDE, MOST_LINK_S, check_mount, entry_path, file_path, prefix_of
from workbench.wire import rest_files as rest

# An upload may take days over a slow line, and its link never leaves this program.
_UPLOAD_LINK_S = MOST_LINK_S
# Above what the server allows for one, so that it is the server who says that it took too long.
_FETCH_S = 960.0


def list_files(session: str, mount: str, prefix: str, cursor: str | None, limit: int) -> Request[FilePage]:
    """A page of them."""
    prefix_of(prefix)
    return Request(
        method="GET",
        path=f"{_mount(session, mount)}/items",
        query=given({"prefix": prefix or None, "cursor": cursor, "limit": str(limit)}),
        parse=_page,
        again=True,
    )


def describe_mount(session: str, mount: str) -> Request[MountUsage]:
    """How full it is."""
    return Request(method="GET", path=_mount(session, mount), parse=_usage, again=True, silence_s=SLOW_S)


def upload_link(session: str, mount: str, path: str, size: int | None) -> Request[rest.UploadLink]:
    """Where a file is to be sent."""
    file_path(path)
    asked = given({"path": path, "size": size, "expires_in_s": _UPLOAD_LINK_S})
    return Request(
        method="POST",
        path=f"{_mount(session, mount)}/upload_url",
        body=json_of(rest.MakeUploadLink, asked),
        parse=rest.UploadLink.model_validate,
        again=True,
    )


def download_link(session: str, mount: str, path: str) -> Request[rest.DownloadLink]:
    """Where a file that is there is fetched."""
    file_path(path)
    return Request(
        method="POST",
        path=f"{_mount(session, mount)}/download_url",
        body=json_of(rest.MakeDownloadLink, {"path": path}),
        parse=rest.DownloadLink.model_validate,
        again=True,
    )


def fetch_file(session: str, mount: str, url: str, path: str) -> Request[rest.File]:
    """From another server, by this one."""
    if path.strip("/"):
        entry_path(path)
    return Request(
        method="POST",
        path=f"{_mount(session, mount)}/fetch",
        body=json_of(rest.FetchFile, given({"url": url, "path": path or None})),
        parse=rest.File.model_validate,
        silence_s=_FETCH_S,
    )


def extract_text(session: str, mount: str, path: str) -> Request[str]:
    """What can be read in a file."""
    entry_path(path)
    return Request(
        method="POST",
        path=f"{_mount(session, mount)}/extract_text",
        body=json_of(rest.ExtractText, {"path": path}),
        parse=lambda found: rest.ExtractedText.model_validate(found).text,
        silence_s=_FETCH_S,
    )


def delete_file(session: str, mount: str, path: str) -> Request[DeletedFiles]:
    """A file, or a folder with all in it."""
    entry_path(path)
    return Request(
        method="POST",
        path=f"{_mount(session, mount)}/delete",
        body=json_of(rest.DeleteFile, {"path": path}),
        parse=_deleted,
        silence_s=SLOW_S,
    )


def prefix_from(path: str | None, prefix: str | None) -> str:
    """One thing with two names."""
    if path is not None and prefix is not None:
        raise InvalidRequest("path= and prefix= are two names for the same; give one of them")
    return path if path is not None else prefix or ""


def folder_prefix(path: str) -> str:
    """With which the paths of all files in a folder begin; empty for the top."""
    below = path.removeprefix(INSIDE) if path == INSIDE or path.startswith(f"{INSIDE}/") else path
    below = below.strip("/")
    return f"{below}/" if below else ""


def _mount(session: str, mount: str) -> str:
    if "/" in mount:
        # No address of a server has one within a name, so it could not tell us.
        check_mount(mount)
    return f"/v1/sessions/{part_of_address(session)}/mounts/{part_of_address(mount)}"


def _page(answer: object) -> FilePage:
    page = rest.FilePage.model_validate(answer)
    items = [
        ListedFile(
            mount_relative_path=one.path,
            sandbox_mount_prefix=INSIDE,
            size=one.size,
            last_modified=one.modified_at,
            version=one.version,
        )
        for one in page.items
    ]
    return FilePage(items=items, next_cursor=page.next_cursor, skipped=page.skipped)


def _deleted(answer: object) -> DeletedFiles:
    gone = rest.DeletedFiles.model_validate(answer)
    return DeletedFiles(path=gone.path, files=gone.files)


def _usage(answer: object) -> MountUsage:
    told = rest.Mount.model_validate(answer)
    return MountUsage(
        bytes=told.bytes,
        files=told.files,
        most_bytes=told.most_bytes,
        most_files=told.most_files,
        complete=told.complete,
        coming_bytes=told.coming_bytes,
        unsaved=told.unsaved,
    )
