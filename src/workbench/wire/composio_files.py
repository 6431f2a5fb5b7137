"""The shapes of the sessions API for files of a session."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from workbench.model.mounts import INSIDE
from workbench.wire.composio import ApiSent
from workbench.wire.rest import Answered

_PATH = "From the top of the mount, such as `data/in.csv`; a slash before it is taken as well."
# Rules for paths are the core's, which has words for each of them.
MountRelativePath = Annotated[str, Field(description=_PATH, examples=["data/sales.csv"])]


class AskUploadUrl(ApiSent):
    """A link by which one file can be put into a mount."""

    mount_relative_path: MountRelativePath
    mimetype: str | None = Field(
        default=None, description="Not kept: files have no types, and downloads go by their names."
    )


class AskDownloadUrl(ApiSent):
    """A link by which one file, which is there, can be read."""

    mount_relative_path: MountRelativePath


class AskDelete(ApiSent):
    """A file, or a folder with all that is in it."""

    mount_relative_path: MountRelativePath


class FileItem(Answered):
    """A file that is there."""

    mount_relative_path: str
    sandbox_mount_prefix: str = INSIDE
    size: int
    last_modified: str


class FileItems(Answered):
    """Some files, by path."""

    items: list[FileItem]
    next_cursor: str | None = Field(default=None, description="Where the next page begins; left out if there is none.")


class UploadUrl(Answered):
    """Where one file can be sent by PUT, without a key, by whoever has this."""

    upload_url: str
    mount_relative_path: str
    sandbox_mount_prefix: str = INSIDE
    expires_at: str


class DownloadUrl(Answered):
    """Where one file can be read by GET, without a key, by whoever has this."""

    download_url: str
    mount_relative_path: str
    sandbox_mount_prefix: str = INSIDE
    expires_at: str


class DeletedFile(Answered):
    """What is no more."""

    mount_relative_path: str
    sandbox_mount_prefix: str = INSIDE
