"""The shapes of REST for files of sessions, shared by the server and the SDK, as in rest.py."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from workbench.model.mounts import DEFAULT_LINK_S, INSIDE, MOST_LINK_S
from workbench.wire.rest import Answered, Sent, whole

_PATH = "From the top of the mount, such as `data/in.csv`; a slash or `/mnt/files/` before it is taken as well."
_GOOD_FOR = "For how many seconds it is good."
# Rules for paths are the core's, which has words for each of them.
Path = Annotated[str, Field(description=_PATH, examples=["data/sales.csv"])]
_Lifetime = Annotated[int, Field(ge=1, le=MOST_LINK_S), BeforeValidator(whole)]
_Size = Annotated[int, Field(ge=0, le=2**53), BeforeValidator(whole)]


class MakeUploadLink(Sent):
    """A link by which one file can be put into a mount."""

    path: Path
    expires_in_s: _Lifetime = Field(default=DEFAULT_LINK_S, description=_GOOD_FOR)
    size: _Size | None = Field(
        default=None, description="How many bytes will come. Then fewer or more are refused, and tus clients know it."
    )


class MakeDownloadLink(Sent):
    """A link by which one file can be read."""

    path: Path
    expires_in_s: _Lifetime = Field(default=DEFAULT_LINK_S, description=_GOOD_FOR)


class FetchFile(Sent):
    """A file that another server has."""

    url: str = Field(max_length=8192, examples=["https://example.com/sales.csv"])
    path: str = Field(
        default="",
        description="Empty for the name that the other server gives it; with a slash at its end, a folder for that.",
    )


class ExtractText(Sent):
    """The text of a file: of a PDF, a picture of a page, an office document, a mail or a table."""

    path: Path


class ExtractedText(Answered):
    """What can be read in it."""

    path: str
    text: str


class DeleteFile(Sent):
    """A file, or a folder with all that is in it."""

    path: Path


class File(Answered):
    """A file that is there."""

    path: str = Field(description="From the top of the mount.")
    size: int
    modified_at: str
    version: str = Field(description="Another one whenever what is in it has changed; the ETag of downloads.")


class FilePage(Answered):
    """Some files, by path."""

    items: list[File]
    next_cursor: str | None = Field(default=None, description="Where the next page begins; null if there is none.")
    skipped: int = Field(
        default=0, description="What lies between and is no file that can be told of: links, devices, odd names."
    )


class Mount(Answered):
    """How much is in a mount, and how much may be."""

    id: str
    mount_prefix: str = Field(default=INSIDE, description="Where code inside sees it.")
    bytes: int
    files: int = Field(description="Files and folders.")
    most_bytes: int
    most_files: int
    complete: bool = Field(default=True, description="False if a part of it could not be measured.")
    coming_bytes: int = Field(default=0, description="Of uploads that are not done, which count against the most.")
    unsaved: int = Field(default=0, description="Files that are not in the object store yet, where there is one.")


class UploadLink(Answered):
    """Where one file can be sent, without a key, by whoever has this."""

    url: str
    method: Literal["PUT"] = "PUT"
    path: str
    mount_prefix: str = INSIDE
    expires_at: str


class DownloadLink(Answered):
    """Where one file can be read, without a key, by whoever has this."""

    url: str
    method: Literal["GET"] = "GET"
    path: str
    mount_prefix: str = INSIDE
    expires_at: str
    size: int
    version: str


class DeletedFiles(Answered):
    """What is no more."""

    path: str
    files: int = Field(description="How many there were.")
